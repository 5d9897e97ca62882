import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Address, within } from "@protoport/testing";

/** The requests to the server under measurement, with their response types. */
export interface Answers {
  /** Returns the addresses on which protoport/test/suites/costs/server.ts listens. */
  readonly addresses: { readonly [name in ServerName]: Address };
  /** The reachable bytes on the heap and in buffers, the process's bytes, and the bytes that its sockets have read. */
  readonly held: { readonly bytes: number; readonly residentBytes: number; readonly readBytes: number };
  /** Waits until the sockets are idle. */
  readonly quiet: void;
  /** The CPU time that its threads have used, in µs. */
  readonly spent: number;
  /** Completes slow operations. */
  readonly release: void;
  /** Uses up Node's buffer pool from now on, as other clients would. */
  readonly usePool: void;
  readonly alone: void;
}

/** The servers in that process: a gateway that requires a credential, and gateways in front of the test services. */
export type ServerName = "guarded" | "guardedOverTls" | "greenhouse" | "forwardedGreenhouse" | "kitchenSink";

export type Question = keyof Answers;

/** A server in a separate process. Dispose it with `await using`. */
export interface MeasuredServer {
  readonly addresses: Answers["addresses"];
  ask<Q extends Question>(question: Q): Promise<Answers[Q]>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A response's timeout in ms, which includes collecting hundreds of MiB of garbage on a busy machine. */
const responseLimitMs = 60_000;

const program = fileURLToPath(new URL("../../suites/costs/server.ts", import.meta.url));

export async function startMeasuredServer(): Promise<MeasuredServer> {
  const child = fork(program, { execArgv: [], serialization: "advanced" });
  // Sends one request at a time, because responses are matched by their order.
  const ask: MeasuredServer["ask"] = async (question) => {
    child.send(question);
    const [{ answer }] = await within(once(child, "message"), `the response to "${question}"`, responseLimitMs);
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
