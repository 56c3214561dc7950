"""Texts for the tokenizer's goldens: what it is trained on, and the strings it is asked about. Same seed, same text."""

import unicodedata

WORDS = """the of and to in a is that it was for on are as with his they at be this have from or one had by word but
not what all were we when your can said there use an each which she do how their if will up other about out many then
them these so some her would make like him into time has look two more write go see number no way could people my than
first water been call who oil its now find long down day did get come made may part over new sound take only little
work know place year live me back give most very after thing our just name good sentence man think say great where help
through much before line right too mean old any same tell boy follow came want show also around form three small set
put end does another well large must big even such because turn here why ask went men read need land different home us
move try kind hand picture again change off play spell air away animal house point page letter mother answer found
study still learn should America world attention token bandwidth cache kernel matrix naïve café résumé""".split()
FOREIGN = (
    """Привет мир как дела сегодня Γειά σου κόσμε مرحبا بالعالم שלום עולם नमस्ते दुनिया สวัสดีชาวโลก გამარჯობა வணக்கம்
Đường phố Việt Nam über straße façade señor Århus Łódź İstanbul ǅungla ﬁne""".split()
)
CJK = "你好世界我们今天去学校吃饭天气很好機器學習語言模型こんにちは世界カタカナひらがな안녕하세요세계한국어龍㐀𠀀𪜶，。！？「」…"
CONTRACTIONS = "don't I'll we've you're he'd it's I'm DON'T I'LL WE'VE You'Re HE'D IT'S I'M 'tis y'all'd've it’s 'ſ 's's '' x'S".split()
EMOJI = [
    "😀",
    "🤦🏽‍♂️",
    "👨‍👩‍👧‍👦",
    "🇫🇷",
    "🇺🇳🇯🇵",
    "1️⃣",
    "#️⃣",
    "❤️",
    "❤",
    "🏴󠁧󠁢󠁳󠁣󠁴󠁿",
    "👩🏿‍🚀",
    "🧑‍🤝‍🧑",
    "☺️",
    "🙃🙃🙃",
    "✨",
    "©️",
    "🫠",
    "‍",
    "️",
]
SPACES = [
    " ",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\n",
    "\r",
    "\r\n",
    "\u00a0",
    "\u2003",
    "\u3000",
    "\u2028",
    "\u0085",
    "\u180e",
    "\u200b",
    "\u202f",
    "\v",
    "\f",
    "\ufeff",
    "\u1680",
    "\u001c",
]
DIGITS = [
    "0",
    "1",
    "7",
    "42",
    "2024",
    "1234567",
    "3.14159",
    "1,000,000",
    "٣٤٥",
    "१२३",
    "²",
    "½",
    "Ⅷ",
    "①",
    "፩",
    "𝟘𝟙",
    "০১",
]
COMBINING = [
    chr(c)
    for c in [
        0x300,
        0x301,
        0x302,
        0x303,
        0x308,
        0x30A,
        0x323,
        0x327,
        0x328,
        0x331,
        0x345,
        0x5B0,
        0x64B,
        0x93C,
        0x94D,
        0xE48,
        0x20D0,
        0x3099,
        0x1AB0,
        0xFE20,
    ]
]
HANGUL = [chr(c) for c in [0x1100, 0x1112, 0x1161, 0x1175, 0x11A8, 0x11C2, 0xAC00, 0xAC01, 0xD7A3]]
COMPOSABLE = list("aeioucnszAEO") + ["\u212b", "\u2126", "\uf900", "か", "क", "\u0958", "\u1e9b", "\u0344", "\u2adc"]
CODE = [
    "def f(x):\n    return x ** 2\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}",
    '{"key": [1, 2.5, null]}',
    "if (a && !b || c->d) ::std::abort();",
    "#include <vector>\r\n",
    "SELECT * FROM t WHERE id='7';",
    "x=y;//z",
    "        \n\n    pass",
    "std::vector<std::pair<int, float>>{}",
    "$HOME/bin:/usr/bin",
    '<div class="a">&nbsp;</div>',
    "lambda x: x[::-1]",
    "\\frac{a}{b}",
    "a_b_c __init__ camelCaseWord SHOUT_CASE",
    "0xFF 1e-9 0b101 1_000",
]
LINKS = ["https://example.org/a?b=c&d=%20", "user@example.com", "C:\\Windows\\System32", "../x/y.z", "v1.2.3-rc1+build"]
SPECIAL = [
    "<|endoftext|>",
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
]
PUNCTUATION = list("!?.,;:-—…\"'()[]{}<>/\\|@#$%^&*_+=~`") + [
    "...",
    "!!!",
    "?!",
    "--",
    "==>",
    "«»",
    "„“",
    "¿",
    "¡",
    "€",
    "№",
]

ASSIGNED = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) not in ("Cn", "Co")]


def sentence(rng):
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, 5))]
    if rng.random() < 0.3:
        words.append(rng.choice(CONTRACTIONS))
    text = " ".join(words)
    return (text.capitalize() if rng.random() < 0.3 else text) + rng.choice(["", "", ".", "!", "?", ", ", "\n"])


def joined(pool, most, glue=("", "", " ")):
    return lambda rng: rng.choice(glue).join(rng.choice(pool) for _ in range(rng.randint(1, most)))


def run_of_space(rng):
    return rng.choice(SPACES) * rng.randint(1, 9)


def broken_special(rng):
    token = rng.choice(SPECIAL)
    return rng.choice([token, token, token[:-1], token[1:], token * 2, f" {token} ", token.upper(), token[:2] + token])


def control(rng):
    return "".join(chr(rng.choice([*range(0x20), *range(0x7F, 0xA1)])) for _ in range(rng.randint(1, 4)))


def accented(rng):
    return "".join(
        rng.choice(COMPOSABLE) + "".join(rng.choices(COMBINING, k=rng.randint(0, 3))) for _ in range(rng.randint(1, 3))
    )


def anything(rng):
    return "".join(chr(rng.choice(ASSIGNED)) for _ in range(rng.randint(1, 4)))


def long_word(rng):
    return "".join(rng.choice("abcdeghilnorst") for _ in range(rng.randint(20, 60)))


MAKERS = [
    sentence,
    sentence,
    sentence,
    joined(FOREIGN, 3, (" ",)),
    joined(CJK, 6),
    joined(CONTRACTIONS, 2),
    joined(EMOJI, 3),
    joined(DIGITS, 3),
    run_of_space,
    run_of_space,
    broken_special,
    control,
    accented,
    joined(HANGUL, 4),
    anything,
    joined(PUNCTUATION, 4),
    joined(CODE, 1),
    joined(LINKS, 1),
]


def questions(rng, count):
    """`count` different strings, most of them short."""
    texts = dict.fromkeys(
        [
            "",
            *(chr(c) for c in range(128)),
            *SPECIAL,
            *EMOJI,
            *COMPOSABLE,
            *(long_word(rng) for _ in range(25)),
            "a" * 100,
            " " * 100 + "x",
            "\n" * 70,
            "é" * 50,
        ]
    )
    while len(texts) < count:
        texts[rng.choice(["", "", " "]).join(rng.choice(MAKERS)(rng) for _ in range(rng.choice([1, 1, 2, 2])))] = None
    return list(texts)


def training_lines(rng, count):
    """Mostly English, with enough of everything else that its bytes get merges too."""
    others = [
        joined(FOREIGN, 4, (" ",)),
        joined(CJK, 12, ("",)),
        joined(CODE, 2),
        joined(EMOJI, 3),
        joined(DIGITS, 3),
        accented,
    ]
    for _ in range(count):
        yield " ".join(sentence(rng) for _ in range(4)) + "\n" + rng.choice(others)(rng)
