"""A taskset of the verifiers library, as its users write them."""

import verifiers.v1 as vf


class Data(vf.TaskData):
    answer: str
    level: int


class CountTask(vf.Task[Data]):
    @vf.reward(weight=2.0)
    async def right(self, trace: vf.Trace) -> float:
        return float(self.data.answer in trace.last_reply)

    @vf.reward
    async def brief(self, trace: vf.Trace) -> float:
        return 0.5 if len(trace.last_reply) < self.data.level else 0.0


class CountConfig(vf.TasksetConfig):
    """Nothing to set."""


class CountTaskset(vf.Taskset[CountTask, CountConfig]):
    def load(self):
        return [CountTask(Data(prompt="q?", answer="42", level=10))]
