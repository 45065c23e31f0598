"""What these tests share with those of Kafka's clients."""

from tests.unit.kafka.conftest import usual_time_outs as usual_time_outs
