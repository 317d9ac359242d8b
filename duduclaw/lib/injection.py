"""How much a text looks like an injected instruction: rules with weights, 60 blocks tool arguments. Pure.

The text is normalised first (NFKC, invisible characters out, look-alike letters to Latin, blanks collapsed).
Every gap in a pattern is bounded, so the scan takes linear time.
"""

import re
import unicodedata
from dataclasses import dataclass

THRESHOLD = 60
MOST = 100
CYRILLIC_AND_GREEK = str.maketrans("аеорсухіѕјԁոαεορυι", "aeopcyxisjdnaeopui")
ESCAPES = re.compile(r"\\[nrt]")
BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Rule:
    """`instant` alone reaches the threshold; otherwise `weight` is added once. `needs`: no match without one."""

    name: str
    weight: int
    instant: bool
    needs: tuple[str, ...]
    pattern: re.Pattern[str]

    def fires(self, plain: str) -> bool:
        """Whether the normalised text matches."""
        return any(word in plain for word in self.needs) and self.pattern.search(plain) is not None


def rule(name: str, weight: int, needs: str, *patterns: str, instant: bool = False) -> Rule:
    """A rule that any of the patterns fires."""
    joined = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    return Rule(name, weight, instant, tuple(needs.split("|")), joined)


GAP = r"(?:[\w'-]{1,24},? ){0,%d}"
UP_TO_2, UP_TO_4, UP_TO_8 = GAP % 2, GAP % 4, GAP % 8
ORDERS = r"(?:instructions?|prompts?|directives?|commands|guidelines|guardrails|programming|safety rules|system rules)"
SECRETS = (
    r"(?:api[ _-]?keys?|access tokens?|passwords?|credentials?|secrets?|private keys?|env(?:ironment)? variables?"
    r"|system prompt|\.env)"
)
OUTSIDE = r"(?:https?://|[\w.+-]{1,64}@[\w-]{1,64}\.|webhook|my (?:server|endpoint|email))"

RULES: tuple[Rule, ...] = (
    rule(
        "instruction_override",
        40,
        "instruction|prompt|directive|command|guideline|guardrail|programming|rules|above|before|previously"
        "|so far|指令|指示|提示|規則|规则|命令|プロンプト|ルール",
        rf"\b(?:ignore|disregard|forget|override|bypass|discard) {UP_TO_2}(?:previous|prior|earlier|above|preceding"
        rf"|existing|original|initial|system|your|safety) {UP_TO_2}{ORDERS}",
        rf"\b(?:ignore|disregard|forget) (?:all|everything|anything) (?:of )?(?:the |that |your )?"
        rf"(?:(?:{ORDERS}|you were told|you have been told|i told you|said) )?(?:above|before|previously|so far)\b",
        r"\bdo not follow (?:your|the|any) (?:previous |prior |system |original )?(?:instructions|guidelines)",
        r"(?:忽略|無視|无视|忘記|忘记|忽視|不要理會|不要理会).{0,6}(?:之前|先前|以上|上面|前面|系統|系统|原本|原来|所有)"
        r".{0,6}(?:指令|指示|提示詞|提示词|規則|规则|命令)",
        r"(?:これまで|以前|上記|前|システム|すべて)の.{0,6}(?:指示|命令|プロンプト|ルール)を(?:すべて|全て)?"
        r"(?:無視|忘れ|破棄)",
        instant=True,
    ),
    rule(
        "role_hijack",
        35,
        "dan|jailbr|unrestricted|uncensored|unfiltered|without|bound by|mode|<|[|##|限制|越獄|越狱|制限|脱獄",
        rf"\byou are (?:now|no longer) {UP_TO_2}(?:dan\b|jailbroken|unrestricted|uncensored|unfiltered|bound by"
        r"|in (?:developer|god|debug|admin|sudo|jailbreak) mode)",
        rf"\b(?:act|behave|respond|pretend) (?:as|like|to be|you are|that you are) {UP_TO_2}(?:dan\b|jailbroken"
        r"|unrestricted|uncensored|unfiltered|without (?:any )?(?:restrictions|rules|filters|limits))",
        r"\b(?:enter|enable|activate|switch to) (?:god|dan|jailbreak|sudo) mode",
        r"<\|(?:im_start|im_end|system|endoftext|start_header_id)\|?>?",
        r"\[/?inst\]|<</?sys>>|</?system>",
        r"(?:\[system\]|#{2,4} ?system) ?:? ?(?:prompt|override|you (?:are|must|will)|ignore"
        r"|new (?:orders|instructions|rules|prompt))",
        r"(?:你現在是|你现在是|從現在起你是|从现在起你是|假裝你是|假装你是).{0,8}(?:不受限制|沒有限制|没有限制|越獄|越狱)",
        r"(?:あなたは今から|今からあなたは|お前は今から).{0,10}(?:制限のない|無制限|脱獄)",
        instant=True,
    ),
    rule(
        "tool_abuse",
        30,
        "without|tell|inform|mention|<|告訴|告诉|ユーザー|管理者|オペレーター",
        rf"\b(?:call|use|invoke|execute|run|trigger) {UP_TO_4}(?:tool|function|command) {UP_TO_8}without "
        r"(?:asking|confirmation|confirming|approval|permission|telling|informing)",
        r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this|it) to) (?:the |your |any )?"
        r"(?:user|operator|human|owner|administrator|admin)\b(?! (?:until|before|yet|again|unless|twice))",
        r"<(?:tool_call|tool_use|function_calls?|invoke name=|antml:)",
        r"(?:不要|別|别|勿)(?:告訴|告诉)(?:使用者|用户|用戶|管理員|管理员|操作員|操作员)",
        r"(?:ユーザー|管理者|オペレーター)(?:に|には)(?:知らせ|伝え|確認し)(?:ないで|るな|ずに)",
        instant=True,
    ),
    rule(
        "data_exfiltration",
        25,
        "://|@|webhook|my server|my endpoint|my email|exfiltrate|leak|steal",
        rf"\b(?:send|post|upload|exfiltrate|leak|forward|transmit|email|e-mail|copy) {UP_TO_4}{SECRETS} "
        rf"{UP_TO_4}to {UP_TO_2}{OUTSIDE}",
        rf"\b(?:exfiltrate|leak|steal) {UP_TO_4}{SECRETS}",
        rf"(?:把|將|将).{{0,10}}(?:密碼|密码|金鑰|密钥|憑證|凭证|api key).{{0,10}}(?:傳送|发送|發送|上傳|上传|寄|传)"
        rf".{{0,6}}{OUTSIDE}",
        instant=True,
    ),
    rule(
        "system_prompt_extraction",
        30,
        "prompt|instruction|message|repeat|提示|プロンプト",
        rf"\b(?:reveal|show|print|repeat|output|display|dump|recite|tell me|give me|what (?:is|are)) {UP_TO_2}"
        r"(?:your|the) (?:full |exact |entire |complete )?(?:system|initial|hidden|secret|original|developer) "
        r"(?:prompt|instructions?|message)",
        r"\brepeat (?:everything|all|the text|the words) (?:above|before)",
        r"(?:顯示|显示|輸出|输出|告訴我|告诉我|洩漏|泄露).{0,6}(?:系統提示|系统提示|提示詞|提示词)",
        r"システムプロンプトを.{0,6}(?:表示|出力|教え)",
    ),
    rule(
        "encoding_bypass",
        25,
        "decode|decrypt|unscramble|encoded|base64|rot13|解碼|解码",
        rf"\b(?:decode|decrypt|unscramble) {UP_TO_4}(?:base64|rot13|hex|text|string|payload|message) {UP_TO_4}"
        r"and (?:then )?(?:execute|run|follow|obey|do)",
        rf"\b(?:follow|execute|obey) {UP_TO_4}(?:encoded|base64|rot13) {UP_TO_2}(?:instructions?|commands?|text)",
        r"(?:解碼|解码).{0,12}(?:並|并|然後|然后|再)(?:執行|执行)",
    ),
    rule(
        "termination_manipulation",
        30,
        "without|regardless|no matter|even |skip|bypass|disable|always|in any case|標記|标记|判定",
        rf"\b(?:mark|report|declare|treat|consider) {UP_TO_4}(?:complete|completed|done|passed|accepted|approved) "
        rf"{UP_TO_4}(?:without|regardless of|no matter|even if|even though)",
        r"\b(?:skip|bypass|disable) (?:all |any |the )?(?:verification|validation|review|safety checks?|judge)\b",
        r"\b(?:output|answer|reply|respond)(?: only)?(?: with)? [\"']?(?:pass|accept|approved|complete)[\"']? "
        r"(?:regardless|no matter|always|in any case)",
        r"(?:直接|一律).{0,4}(?:標記|标记|判定).{0,4}(?:完成|通過|通过)",
    ),
)


def normalise(text: str) -> str:
    """The form that the rules read."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        text = "".join(char for char in text if unicodedata.category(char) != "Cf").casefold()
        text = text.translate(CYRILLIC_AND_GREEK)
    text = text.casefold()
    return BLANKS.sub(" ", ESCAPES.sub(" ", text))


def findings(text: str) -> tuple[Rule, ...]:
    """The rules that the text fires, in order."""
    plain = normalise(text)
    return tuple(rule for rule in RULES if rule.fires(plain))


def score(text: str) -> int:
    """0 to 100; 60 and more blocks. An instant rule scores at least 60."""
    fired = findings(text)
    total = sum(rule.weight for rule in fired)
    return min(MOST, max(total, THRESHOLD) if any(rule.instant for rule in fired) else total)
