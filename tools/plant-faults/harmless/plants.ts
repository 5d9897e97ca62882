import type { HarmlessFaults } from "./harmless-fault.ts";

/** Harmless faults in what the plant stores share. */
export const harmlessInPlants: readonly HarmlessFaults[] = [
  {
    file: "src/plants/storable-text.ts",
    line: 'return short.includes("\\0")',
    fault: 'short.includes("\\0") → true',
    why: "to look first is cheaper, and changes nothing",
  },
  {
    file: "src/plants/delete-queue.ts",
    line: "const answeredAtOnce = 64;",
    why: "a number between two bad ones: 65 would do",
  },
  {
    file: "src/plants/delete-queue.ts",
    line: "if (i > 0 && i % answeredAtOnce === 0) await nextTurn();",
    fault: "0 → 1",
    why: "the turn comes one caller later",
  },
  {
    file: "src/plants/store-health.ts",
    line: "return this.#workedAtMs >= timeMs;",
    fault: "this.#workedAtMs >= timeMs → this.#workedAtMs >",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/store-health.ts",
    line: "if (found.mayBeBrief !== true) return false;",
    fault: "return false; → return undefined",
    why: "undefined is as false",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "if (nowMs - this.#refusedAtMs > calmMs)",
    fault: "nowMs - this.#refusedAtMs > calmMs \u2192 nowMs - this.#refusedAtMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "return durationMs > this.#batchMsMax",
    fault: "durationMs > this.#batchMsMax \u2192 durationMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "return durationMs > this.#batchMsMax",
    fault: "durationMs > size * slowDeletionMs \u2192 durationMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/plant-service.ts",
    line: "return {};",
    why: "of a message without fields, nothing makes the same answer",
  },
  {
    file: "src/plants/store-health.ts",
    line: "const untilMs = this.#patientUntilMs ??",
    fault: "0 → 1",
    why: "a store that gives no time has no problem that may be brief",
  },
  {
    file: "src/plants/store-health.ts",
    line: "return performance.now() < this.#patientUntilMs - lastLookMs;",
    fault: "performance.now() < this.#patientUntilMs - lastLookMs → performance.now() <=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "const smallBatchMax = 8;",
    why: "a number between two bad ones: 9 would do",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "if (batch.size <= smallBatchMax)",
    fault: "batch.size <= smallBatchMax → batch.size <",
    why: "a number between two bad ones: 7 would do",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "const judgesNone = ",
    fault: "this.current <= 2 * smallBatchMax → this.current <",
    why: "a number between two bad ones: a little less would do",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "const commitsKept = 8;",
    why: "a number between two bad ones: 9 would do",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "if (values.length > kept)",
    fault: "values.length > kept → values.length >=",
    why: "a number between two bad ones: one less would do",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "const ratesKnownMin = 3;",
    why: "a number between two bad ones: 4 would do",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "return this.#ratesPerMs.length >= ratesKnownMin",
    fault: "this.#ratesPerMs.length >= ratesKnownMin → this.#ratesPerMs.length >",
    why: "a number between two bad ones: 4 would do",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "return this.#ratesPerMs.length >= ratesKnownMin",
    fault: "2 → 3",
    why: "a third of the quickest rate would do, too",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "return this.#ratesPerMs.length >= ratesKnownMin",
    fault: "2 * size >= this.#quickestPerMs * durationMs → 2 * size >",
    why: "no two batches are so much alike",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "if (durationMs > this.#batchMsMax) return;",
    fault: "durationMs > this.#batchMsMax → durationMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "this.current = nowMs - this.#strainedAtMs > calmMs",
    fault: "nowMs - this.#strainedAtMs > calmMs → nowMs - this.#strainedAtMs >=",
    why: "a fraction of a millisecond",
  },
  {
    file: "src/plants/waiting-limit.ts",
    line: "#refusedAtMs = 0;",
    why: "a millisecond after the start of the clock",
  },
  {
    file: "src/plants/store-health.ts",
    line: "return this.problem === undefined && this.#patientUntilMs",
    fault: "await this.#try() → ",
    why: "an async function resolves to what a promise that it returns resolves to",
  },
];
