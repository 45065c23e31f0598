"""The words that the world's names are made of. Many are not ASCII, as in a real provider's data."""

from __future__ import annotations

from typing import Literal, get_args

Language = Literal["en", "de", "sv", "el", "ja", "ar"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


def name(words: tuple[str, ...], index: int) -> str:
    """Return the word at `index`, from 0. Beyond the last one the words repeat, followed by a number."""
    turn, word = divmod(index, len(words))
    return f"{words[word]} {turn + 1}" if turn else words[word]


def _row(text: str) -> tuple[str, ...]:
    return tuple(text.split(" | "))


def _words(text: str) -> dict[Language, str]:
    return dict(zip(LANGUAGES, _row(text), strict=True))


def _columns(*rows: str) -> dict[Language, tuple[str, ...]]:
    words = [_words(row) for row in rows]
    return {language: tuple(row[language] for row in words) for language in LANGUAGES}


SPORTS = _columns(
    "Football | Fußball | Fotboll | Ποδόσφαιρο | サッカー | كرة القدم",
    "Horse Racing | Pferderennen | Galopp | Ιπποδρομίες | 競馬 | سباق الخيل",
    "Tennis | Tennis | Tennis | Τένις | テニス | التنس",
    "Basketball | Basketball | Basket | Μπάσκετ | バスケットボール | كرة السلة",
    "Ice Hockey | Eishockey | Ishockey | Χόκεϊ επί πάγου | アイスホッケー | هوكي الجليد",
    "Greyhounds | Windhundrennen | Hundkapplöpning | Κυνοδρομίες | ドッグレース | سباق الكلاب",
    "Handball | Handball | Handboll | Χάντμπολ | ハンドボール | كرة اليد",
    "Volleyball | Volleyball | Volleyboll | Βόλεϊ | バレーボール | الكرة الطائرة",
)
RACES = frozenset({1, 5})
"""The places in `SPORTS` of those that are races."""

REGIONS = _columns(
    "Sweden | Schweden | Sverige | Σουηδία | スウェーデン | السويد",
    "Turkey | Türkei | Turkiet | Τουρκία | トルコ | تركيا",
    "Spain | Spanien | Spanien | Ισπανία | スペイン | إسبانيا",
    "Austria | Österreich | Österrike | Αυστρία | オーストリア | النمسا",
    "Poland | Polen | Polen | Πολωνία | ポーランド | بولندا",
    "Japan | Japan | Japan | Ιαπωνία | 日本 | اليابان",
    "Greece | Griechenland | Grekland | Ελλάδα | ギリシャ | اليونان",
    "Brazil | Brasilien | Brasilien | Βραζιλία | ブラジル | البرازيل",
    "Germany | Deutschland | Tyskland | Γερμανία | ドイツ | ألمانيا",
    "England | England | England | Αγγλία | イングランド | إنجلترا",
)

LEAGUES = _row("Premier League | Süper Lig | 1. división | Extraliga | Série A | Супер Лига | J1リーグ | Cup")
PLACES = _row(
    "Malmö | Göteborg | København | Tromsø | Reykjavík | Łódź | Kraków | České Budějovice | Győr | "
    "Timișoara | Beşiktaş | İzmir | Αθήνα | Одеса | Львів | São Paulo | Córdoba | Málaga | Nîmes | Zürich | "
    "Münster | 浦和 | 大阪 | 서울 | Leeds | Torino | Porto | Gent | Boston | Perth"
)
CLUBS = _row("FF | FC | IK | SK | United | Athletic | Wanderers | Städte | レッズ | Динамо")

CLUB = _words("{} | {} (Verein) | {} (klubb) | {} (σύλλογος) | {}（クラブ） | {} (نادي)")
"""A competitor's name keeps its script; the word for a club distinguishes the languages."""
RACE = _words("{} | {} (Rennen) | {} (lopp) | {} (κούρσα) | {}（レース） | {} (سباق)")

MARKET_TYPES = {
    1: _words("Match result | Spielausgang | Matchresultat | Αποτέλεσμα αγώνα | 試合結果 | نتيجة المباراة"),
    16: _words(
        "Handicap {handicap} | Vorsprung {handicap} | Handikapp {handicap} | Χάντικαπ {handicap} | "
        "ハンディキャップ {handicap} | الفارق {handicap}"
    ),
    18: _words(
        "Total {total} | Gesamt {total} | Totalt {total} | Σύνολο {total} | 合計 {total} | المجموع {total}"
    ),
    29: _words(
        "Both score | Beide treffen | Båda gör mål | Σκοράρουν και οι δύο | 両チーム得点 | كلاهما يسجل"
    ),
    40: _words(
        "Correct score | Genaues Ergebnis | Rätt resultat | Ακριβές σκορ | 正確なスコア | النتيجة الصحيحة"
    ),
    201: _words("Winner | Sieger | Vinnare | Νικητής | 勝者 | الفائز"),
    202: _words(
        "Place, {places} places at {fraction} | Platz, {places} Plätze zu {fraction} | "
        "Plats, {places} platser à {fraction} | Πλασέ, {places} θέσεις προς {fraction} | "
        "複勝 {places} 着 {fraction} | مركز {places} بنسبة {fraction}"
    ),
    301: _words("Outright winner | Gesamtsieger | Totalvinnare | Τελικός νικητής | 優勝 | الفائز النهائي"),
}
"""Market type → its name by language, with the market's properties as placeholders."""

SELECTIONS = {
    "draw": _words("Draw | Unentschieden | Oavgjort | Ισοπαλία | 引分 | تعادل"),
    "over": _words(
        "Over {total} | Über {total} | Över {total} | Πάνω από {total} | {total} 以上 | أكثر من {total}"
    ),
    "under": _words(
        "Under {total} | Unter {total} | Mindre än {total} | Κάτω από {total} | {total} 以下 | أقل من {total}"
    ),
    "yes": _words("Yes | Ja | Jo | Ναι | はい | نعم"),
    "no": _words("No | Nein | Nej | Όχι | いいえ | لا"),
}
