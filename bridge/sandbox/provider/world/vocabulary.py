"""What things are called in each language: the words that translations are made of.

The words of a language stand in the order of `names`, so that a thing's number finds them all.
"""

from __future__ import annotations

from typing import Literal, get_args

from bridge.sandbox.provider.world import names

Language = Literal["en", "de", "sv", "el", "ja", "ar"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


SPORTS: dict[Language, tuple[str, ...]] = {
    "en": names.SPORTS,
    "de": _words(
        "Fußball, Pferderennen, Tennis, Basketball, Eishockey, Windhundrennen, Handball, Volleyball, "
        "Baseball, American Football, Rugby Union, Rugby League, Kricket, Darts, Snooker, Tischtennis, "
        "Federball, Boxen, MMA, Radsport, Golf, Formel 1, Futsal, Wasserball, Unihockey, Bandy, Biathlon, "
        "Skispringen, E-Sport, Boule"
    ),
    "sv": _words(
        "Fotboll, Galopp, Tennis, Basket, Ishockey, Hundkapplöpning, Handboll, Volleyboll, "
        "Baseboll, Amerikansk fotboll, Rugby union, Rugby league, Cricket, Dart, Snooker, Bordtennis, "
        "Badminton, Boxning, MMA, Cykling, Golf, Formel 1, Futsal, Vattenpolo, Innebandy, Bandy, Skidskytte, "
        "Backhoppning, E-sport, Boule"
    ),
    "el": _words(
        "Ποδόσφαιρο, Ιπποδρομίες, Τένις, Μπάσκετ, Χόκεϊ επί πάγου, Κυνοδρομίες, Χάντμπολ, Βόλεϊ, "
        "Μπέιζμπολ, Αμερικανικό ποδόσφαιρο, Ράγκμπι Γιούνιον, Ράγκμπι Λιγκ, Κρίκετ, Βελάκια, Σνούκερ, "
        "Επιτραπέζια αντισφαίριση, Μπάντμιντον, Πυγμαχία, Μικτές πολεμικές τέχνες, Ποδηλασία, Γκολφ, "
        "Φόρμουλα 1, Ποδόσφαιρο σάλας, Υδατοσφαίριση, Φλόρμπολ, Μπάντι, Δίαθλο, Άλμα με σκι, Ηλεκτρονικά, "
        "Πετάνκ"
    ),
    "ja": _words(
        "サッカー, 競馬, テニス, バスケットボール, アイスホッケー, ドッグレース, ハンドボール, バレーボール, "
        "野球, アメリカンフットボール, ラグビーユニオン, ラグビーリーグ, クリケット, ダーツ, スヌーカー, "
        "卓球, バドミントン, ボクシング, 総合格闘技, 自転車競技, ゴルフ, F1, フットサル, 水球, フロアボール, "
        "バンディ, バイアスロン, スキージャンプ, eスポーツ, ペタンク"
    ),
    "ar": _words(
        "كرة القدم, سباق الخيل, التنس, كرة السلة, هوكي الجليد, سباق الكلاب, كرة اليد, الكرة الطائرة, "
        "البيسبول, كرة القدم الأمريكية, اتحاد الرجبي, دوري الرجبي, الكريكيت, السهام, السنوكر, "
        "تنس الطاولة, الريشة الطائرة, الملاكمة, فنون القتال المختلطة, الدراجات, الغولف, فورمولا 1, "
        "كرة الصالات, كرة الماء, فلوربول, باندي, البياثلون, القفز التزلجي, الرياضات الإلكترونية, بيتانك"
    ),
}

REGIONS: dict[Language, tuple[str, ...]] = {
    "en": _words(
        "Sweden, Turkey, Spain, Austria, Czechia, Poland, Iceland, Japan, South Korea, Ukraine, "
        "Greece, Brazil, Mexico, Germany, France, Italy, England, Ireland, Vietnam, Iraq"
    ),
    "de": _words(
        "Schweden, Türkei, Spanien, Österreich, Tschechien, Polen, Island, Japan, Südkorea, Ukraine, "
        "Griechenland, Brasilien, Mexiko, Deutschland, Frankreich, Italien, England, Irland, Vietnam, Irak"
    ),
    "sv": _words(
        "Sverige, Turkiet, Spanien, Österrike, Tjeckien, Polen, Island, Japan, Sydkorea, Ukraina, "
        "Grekland, Brasilien, Mexiko, Tyskland, Frankrike, Italien, England, Irland, Vietnam, Irak"
    ),
    "el": _words(
        "Σουηδία, Τουρκία, Ισπανία, Αυστρία, Τσεχία, Πολωνία, Ισλανδία, Ιαπωνία, Νότια Κορέα, Ουκρανία, "
        "Ελλάδα, Βραζιλία, Μεξικό, Γερμανία, Γαλλία, Ιταλία, Αγγλία, Ιρλανδία, Βιετνάμ, Ιράκ"
    ),
    "ja": _words(
        "スウェーデン, トルコ, スペイン, オーストリア, チェコ, ポーランド, アイスランド, 日本, 韓国, "
        "ウクライナ, ギリシャ, ブラジル, メキシコ, ドイツ, フランス, イタリア, イングランド, "
        "アイルランド, ベトナム, イラク"
    ),
    "ar": _words(
        "السويد, تركيا, إسبانيا, النمسا, التشيك, بولندا, آيسلندا, اليابان, كوريا الجنوبية, أوكرانيا, "
        "اليونان, البرازيل, المكسيك, ألمانيا, فرنسا, إيطاليا, إنجلترا, أيرلندا, فيتنام, العراق"
    ),
}

CLUB: dict[Language, str] = {
    "en": "{}",
    "de": "{} (Verein)",
    "sv": "{} (klubb)",
    "el": "{} (σύλλογος)",
    "ja": "{}（クラブ）",
    "ar": "{} (نادي)",
}
"""A competitor's name keeps its script; the word for a club tells the languages apart."""

RACE: dict[Language, str] = {
    "en": "{}",
    "de": "{} (Rennen)",
    "sv": "{} (lopp)",
    "el": "{} (κούρσα)",
    "ja": "{}（レース）",
    "ar": "{} (سباق)",
}

MARKET_TYPES: dict[int, dict[Language, str]] = {
    1: {
        "en": "Match result",
        "de": "Spielausgang",
        "sv": "Matchresultat",
        "el": "Αποτέλεσμα αγώνα",
        "ja": "試合結果",
        "ar": "نتيجة المباراة",
    },
    16: {
        "en": "Handicap {handicap}",
        "de": "Vorsprung {handicap}",
        "sv": "Handikapp {handicap}",
        "el": "Χάντικαπ {handicap}",
        "ja": "ハンディキャップ {handicap}",
        "ar": "الفارق {handicap}",
    },
    18: {
        "en": "Total {total}",
        "de": "Gesamt {total}",
        "sv": "Totalt {total}",
        "el": "Σύνολο {total}",
        "ja": "合計 {total}",
        "ar": "المجموع {total}",
    },
    29: {
        "en": "Both score",
        "de": "Beide treffen",
        "sv": "Båda gör mål",
        "el": "Σκοράρουν και οι δύο",
        "ja": "両チーム得点",
        "ar": "كلاهما يسجل",
    },
    40: {
        "en": "Correct score",
        "de": "Genaues Ergebnis",
        "sv": "Rätt resultat",
        "el": "Ακριβές σκορ",
        "ja": "正確なスコア",
        "ar": "النتيجة الصحيحة",
    },
    201: {
        "en": "Winner",
        "de": "Sieger",
        "sv": "Vinnare",
        "el": "Νικητής",
        "ja": "勝者",
        "ar": "الفائز",
    },
    202: {
        "en": "Place, {places} places at {fraction}",
        "de": "Platz, {places} Plätze zu {fraction}",
        "sv": "Plats, {places} platser à {fraction}",
        "el": "Πλασέ, {places} θέσεις προς {fraction}",
        "ja": "複勝 {places} 着 {fraction}",
        "ar": "مركز {places} بنسبة {fraction}",
    },
    301: {
        "en": "Outright winner",
        "de": "Gesamtsieger",
        "sv": "Totalvinnare",
        "el": "Τελικός νικητής",
        "ja": "優勝",
        "ar": "الفائز النهائي",
    },
}
"""Market type → its name by language, with the market's properties as placeholders."""

SELECTIONS: dict[str, dict[Language, str]] = {
    "draw": {
        "en": "Draw",
        "de": "Unentschieden",
        "sv": "Oavgjort",
        "el": "Ισοπαλία",
        "ja": "引分",
        "ar": "تعادل",
    },
    "over": {
        "en": "Over {total}",
        "de": "Über {total}",
        "sv": "Över {total}",
        "el": "Πάνω από {total}",
        "ja": "{total} 以上",
        "ar": "أكثر من {total}",
    },
    "under": {
        "en": "Under {total}",
        "de": "Unter {total}",
        "sv": "Mindre än {total}",
        "el": "Κάτω από {total}",
        "ja": "{total} 以下",
        "ar": "أقل من {total}",
    },
    "yes": {"en": "Yes", "de": "Ja", "sv": "Jo", "el": "Ναι", "ja": "はい", "ar": "نعم"},
    "no": {"en": "No", "de": "Nein", "sv": "Nej", "el": "Όχι", "ja": "いいえ", "ar": "لا"},
}
