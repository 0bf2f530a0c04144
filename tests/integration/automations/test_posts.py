"""What came of an isolated automation is told to the main session, whatever it cost."""

from tests.integration.gate.spending import costs, paid, spending
from wakeful.automations.wishes import Maker, Wish
from wakeful.testing.kit import wait_for
from wakeful.vocabulary.automation import EverySchedule
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.stimulus import OPERATOR, Trust

ME = Maker(owner=OPERATOR, trust=Trust.OPERATOR, name="me", is_person=True)


async def test_a_post_arrives_though_its_chain_has_spent_what_it_may():
    model = paid([costs(4_000, "found it")])
    budget = BudgetRules(money_per_day=1.0, money_per_chain=0.04)
    async with spending(model, budget) as runtime:
        acts = runtime.services.automations
        job = await acts.add(
            Wish(name="search", schedule=EverySchedule(every_s=60), message="x", isolated=True), ME
        )
        await acts.run(job.id, ME)
        await wait_for(runtime, "turn.finished", session="agent:main:main")
        posts = await runtime.store.read(
            "SELECT state, state_reason, text FROM stimuli WHERE kind = 'system.post'"
        )

    assert [tuple(row) for row in posts] == [("done", None, "search: found it")]
    assert len(model.requests) == 1
