import { expect, test } from "vitest";
import { Readiness } from "../../../../../gateway/src/health/readiness.ts";
import { logReadiness } from "../../../../src/logs/readiness-log.ts";
import { openLogLines } from "../../../../../testing/src/operations/log-lines.ts";

const notReady = (part: string, problem: string) => ({
  level: "warn",
  errorCode: "ERR_NOT_READY",
  msg: "not ready",
  part,
  problem,
});
const readyAgain = (part: string, problem: string) => ({
  level: "warn",
  msg: "ready again",
  part,
  problem,
  lastedMs: expect.any(Number),
});

test("a component is logged when it becomes unready and when it recovers", async () => {
  const store: { problem?: string | undefined } = {};
  const credentials: { problem?: string | undefined } = {};
  const { log, lines } = openLogLines("warn");
  const stop = logReadiness(new Readiness({ store, credentials }), log);
  store.problem = "the disk is full";
  await expect.poll(lines).toMatchObject([notReady("store", "the disk is full")]);
  // Another cause does not change readiness.
  store.problem = "the server is down";
  credentials.problem = "the provider is down";
  await expect.poll(lines).toHaveLength(2);
  store.problem = credentials.problem = undefined;
  await expect
    .poll(lines)
    .toMatchObject([
      notReady("store", "the disk is full"),
      notReady("credentials", "the provider is down"),
      readyAgain("store", "the disk is full"),
      readyAgain("credentials", "the provider is down"),
    ]);
  stop();
});
