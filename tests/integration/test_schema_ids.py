"""A registry that was restored from an older backup has given the id of our bets to another schema."""

from __future__ import annotations

import json

from bridge.avro.codec import schema_id_of
from tests.fake_registry import FakeRegistry, served
from tests.harness import Place, simulate, until

ORDER = {"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "string"}]}


async def test_bets_whose_id_was_given_away_end_the_bridge(place: Place) -> None:
    before, after = FakeRegistry(), FakeRegistry()
    async with simulate(rate=10, history_seconds=3) as feed:
        with served(before) as url:
            bridge = place.bridge(FEED__BASE_URL=feed.url, REGISTRY__URL=url)
            await until(lambda: len(place.read("bets")) >= 30, "30 bets")
            assert await bridge.end() == 0
            published = len(place.read("bets"))
            checkpoints = f"{place.prefix}.checkpoints-value"
            # The ids of a fake registry follow from the order: that of the checkpoint stays, 101.
            after.subjects = {
                "orders-value": json.dumps(ORDER),
                checkpoints: before.subjects[checkpoints],
                f"{place.prefix}.bets-value": before.subjects[f"{place.prefix}.bets-value"],
                f"{place.prefix}.gaps-value": before.subjects[f"{place.prefix}.gaps-value"],
            }
            with served(after) as other:
                bridge = place.bridge(FEED__BASE_URL=feed.url, REGISTRY__URL=other)
                await until(
                    lambda: bridge.process.poll() is not None or len(place.read("bets")) > published, "end"
                )
                assert len(place.read("bets")) == published
                assert bridge.process.poll() == 6
                assert "schema 100 is something else in the registry" in bridge.text()
                assert "a shop.Order" in bridge.text()
                assert "Restore the registry" in bridge.text()
                ran = place.run("tail", "--from-beginning", "--until-end", REGISTRY__URL=other)
                assert f'"count":{published}' in ran.stderr
                assert "a shop.Order" in ran.stderr
                ran = place.run("audit", "--json", REGISTRY__URL=other)
                assert ran.returncode == 1
                assert "a shop.Order" in ran.stdout
                ran = place.run("doctor", "--json", FEED__BASE_URL=feed.url, REGISTRY__URL=other)
                assert ran.returncode == 1
                [found] = [one for one in json.loads(ran.stdout) if one["check"] == "published"]
                assert found["outcome"] == "fail"
                assert "a shop.Order" in found["message"]
            bridge = place.bridge(FEED__BASE_URL=feed.url, REGISTRY__URL=url)
            await until(lambda: len(place.read("bets")) >= published + 10, "more bets")
            assert await bridge.end() == 0
    values = [message.value() for message in place.read("bets")]
    assert len(values) == len(set(values))


async def test_a_standby_that_registered_elsewhere_does_so_again(place: Place) -> None:
    fake = FakeRegistry()
    async with simulate(rate=10, history_seconds=3) as feed:
        with served(fake) as url:
            owner = place.bridge(FEED__BASE_URL=feed.url, REGISTRY__URL=url)
            await until(lambda: len(place.read("bets")) >= 10, "10 bets")
            right = dict(fake.subjects)
            others = {name: text for name, text in right.items() if not name.endswith(".bets-value")}
            fake.subjects = {"orders-value": json.dumps(ORDER), **others}
            standby = place.bridge(FEED__BASE_URL=feed.url, REGISTRY__URL=url)
            await standby.reaches("Standby")
            fake.subjects = right
            assert await owner.end() == 0
            published = len(place.read("bets"))
            await until(lambda: len(place.read("bets")) >= published + 10, "more bets", so_far=standby.text)
            assert "schemas are registered again" in standby.text()
            assert await standby.end() == 0
    assert {schema_id_of(message.value() or b"") for message in place.read("bets")} == {100}
