import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { within } from "../../../packages/testing/src/deadline.ts";
import type { Address } from "../../../packages/testing/src/carriers/exchange.ts";

/** What the server under measurement can be asked, and what it answers. */
export interface Answers {
  /** Where the servers of test/suites/costs/server.ts listen. */
  readonly addresses: { readonly [name in ServerName]: Address };
  /** The bytes of heap and buffers that are no garbage, those of the process, and what its sockets have read. */
  readonly held: { readonly bytes: number; readonly residentBytes: number; readonly readBytes: number };
  /** Waits until nothing more comes. */
  readonly quiet: void;
  /** Microseconds of CPU of all its threads. */
  readonly spent: number;
  /** Ends whatever takes long there. */
  readonly release: void;
  /** Uses up node's pool from now on, as other clients would. */
  readonly usePool: void;
  /** Waits until every connection has closed. */
  readonly alone: void;
}

/** The servers of that process: the plant server, and gateways with the services of the tests behind them. */
export type ServerName = "plants" | "plantsOverTls" | "greenhouse" | "forwardedGreenhouse" | "kitchenSink";

export type Question = keyof Answers;

/** A server in a process of its own. Dispose of it with `await using`. */
export interface MeasuredServer {
  /** Where each of them listens. */
  readonly addresses: Answers["addresses"];
  ask<Q extends Question>(question: Q): Promise<Answers[Q]>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Milliseconds that it may take to answer: to collect the garbage of hundreds of MiB on a busy machine. */
const answerLimitMs = 60_000;

const program = fileURLToPath(new URL("../../suites/costs/server.ts", import.meta.url));

/** Starts test/suites/costs/server.ts. */
export async function startMeasuredServer(): Promise<MeasuredServer> {
  const child = fork(program, { execArgv: [], serialization: "advanced" });
  // One question at a time: the answers come in the order of the questions.
  const ask: MeasuredServer["ask"] = async (question) => {
    child.send(question);
    const [{ answer }] = await within(once(child, "message"), `what the server says to "${question}"`, answerLimitMs);
    return answer;
  };
  return {
    addresses: await ask("addresses"),
    ask,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}
