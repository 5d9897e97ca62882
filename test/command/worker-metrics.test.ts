import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import type { MetricFamily } from "@protoport/telemetry/metrics";
import { collectFromWorkers, findProblemsOfWorkers } from "../../src/command/supervise.ts";
import { createTempFolder, type TempFolder } from "@protoport/testing/process";

const calls = { name: "calls", unit: "{call}", description: "Calls", kind: "counter" } as const;
const durations = { name: "durations", unit: "s", description: "Durations", kind: "histogram", bounds: [1] } as const;

const familiesWith = (value: number): readonly MetricFamily[] => [
  { ...calls, points: [{ attributes: { code: "OK" }, value }] },
  { ...durations, points: [{ attributes: {}, counts: [value, 0], sum: value }] },
];

let folder: TempFolder;
const workers = new Map<number, ChildProcess>();
beforeAll(async () => {
  folder = createTempFolder();
  const program = folder.file("worker.mjs");
  writeFileSync(
    program,
    `process.on("message", () => process.argv[2] === "exits" ? process.exit() : process.send({ metrics: JSON.parse(process.argv[2]), problems: { store: process.argv[3] } }));
     process.send({ port: 1 });`,
  );
  const responses = [JSON.stringify(familiesWith(3)), "exits", JSON.stringify(familiesWith(4))];
  for (const [slot, response] of responses.entries()) {
    const worker = fork(program, [response, `problem ${slot}`], { stdio: "ignore" });
    workers.set(slot, worker);
    await once(worker, "message");
  }
});
afterAll(() => {
  workers.forEach((worker) => worker.kill());
  folder[Symbol.dispose]();
});

test("collectFromWorkers labels series with the worker's slot, and omits exited workers", async () => {
  const want = [
    {
      ...calls,
      points: [
        { attributes: { code: "OK", worker: 0 }, value: 3 },
        { attributes: { code: "OK", worker: 2 }, value: 4 },
      ],
    },
    {
      ...durations,
      points: [
        { attributes: { worker: 0 }, counts: [3, 0], sum: 3 },
        { attributes: { worker: 2 }, counts: [4, 0], sum: 4 },
      ],
    },
    expect.objectContaining({ name: "plantstore.workers", kind: "gauge", points: [{ attributes: {}, value: 2 }] }),
  ];
  expect(await collectFromWorkers(workers)).toEqual(want);
  // The worker has now exited before the request.
  expect(await collectFromWorkers(workers)).toEqual(want);
  const listeners = ["message", "exit"].flatMap((event) =>
    [...workers.values()].map((one) => one.listenerCount(event)),
  );
  expect(listeners).toEqual([0, 0, 0, 0, 0, 0]);
});

test("collectFromWorkers omits workers that do not respond in time", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const collected = collectFromWorkers(workers);
  vi.advanceTimersByTime(2_000);
  expect(await collected).toMatchObject([{ name: "plantstore.workers", points: [{ value: 0 }] }]);
});

test("findProblemsOfWorkers reports each worker's problem, and unresponsive workers", async () =>
  expect(await findProblemsOfWorkers(workers)).toEqual({
    "store of worker 0": "problem 0",
    "process of worker 1": "not running or not responding",
    "store of worker 2": "problem 2",
  }));
