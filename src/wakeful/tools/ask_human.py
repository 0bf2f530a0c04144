"""`ask_human`: ask people something and rest until somebody answers."""

from wakeful.approvals.asking import Asker, ask_question
from wakeful.prompts.approvals import QUESTION_ASKED
from wakeful.tools.tool import Effect, LedgerContext, ToolResult, tool
from wakeful.vocabulary.approving import permission_of
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.text import clean

LONGEST_QUESTION = 4_000

NAME = "ask_human"


@tool(name=NAME, effect=Effect.LEDGER)
def ask_human(context: LedgerContext, question: str) -> ToolResult:
    """Ask the people of this conversation something that you need to know or to have decided: this
    turn ends, they are shown the question, and you go on when somebody has answered.
    """
    asked = clean(question).strip()
    if not 0 < len(asked) <= LONGEST_QUESTION:
        raise InvalidInput("question", f"must have 1 to {LONGEST_QUESTION} characters")
    asker = Asker(tx=context.tx, ids=context.ids, turn=context.turn, publish=context.publish)
    rule = permission_of(context.agent.approvals, NAME)
    approval = ask_question(asker, asked, rule)
    return ToolResult(text=QUESTION_ASKED.format(number=approval.number), ends_turn=True)
