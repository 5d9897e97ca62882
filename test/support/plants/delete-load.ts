import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { Agent, request } from "node:http";
import { json } from "node:stream/consumers";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import type { Address } from "../../../protoport/testing/src/http/exchange.ts";
import { tokens } from "../server/plant-server.ts";

/** The deletions sent to a server under test, and their outcomes. */
export interface Tally {
  /** The plants that calls have named, once each. */
  readonly asked: ReadonlySet<bigint>;
  readonly deleted: ReadonlySet<bigint>;
  readonly notFound: ReadonlySet<bigint>;
  readonly failures: ReadonlyMap<string, number>;
}

/** Concurrent deletions over REST and gRPC that continue until they are stopped. */
export interface DeleteLoad {
  /** Resolves once this many deletions were acknowledged. */
  acknowledged(count: number): Promise<void>;
  /** Sends no more calls, and resolves once all calls have settled. */
  stop(): Promise<void>;
}

type Outcome = "deleted" | "not found" | (string & {});
/** Half of them over REST, half over gRPC. */
const callers = 16;

/** Keeps the tally for all loads on one store. */
export class DeleteTally implements Tally {
  readonly asked: Set<bigint> = new Set();
  readonly deleted: Set<bigint> = new Set();
  readonly notFound: Set<bigint> = new Set();
  readonly failures: Map<string, number> = new Map();
  readonly #idOf: (call: bigint) => bigint;
  #calls = 0n;

  /** @param idOf - returns a call's plant; the first call is 1. By default, the call's number. */
  constructor(idOf: (call: bigint) => bigint = (call) => call) {
    this.#idOf = idOf;
  }

  next(): bigint {
    this.#calls += 1n;
    const id = this.#idOf(this.#calls);
    this.asked.add(id);
    return id;
  }

  count(id: bigint, outcome: Outcome): void {
    if (outcome === "deleted") this.deleted.add(id);
    else if (outcome === "not found") this.notFound.add(id);
    else this.failures.set(outcome, (this.failures.get(outcome) ?? 0) + 1);
  }
}

/** Starts to delete plants 1, 2, 3 …, continuing after those in the tally. */
export function startDeleteLoad(address: Address, tally: DeleteTally): DeleteLoad {
  const over = new AbortController();
  const waiting: { readonly target: number; readonly resolve: () => void }[] = [];
  const agent = new Agent({ keepAlive: true });
  const client = createClient(PlantService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${address.port}` }));
  const overGrpc = (id: bigint): Promise<Outcome> =>
    client.deletePlant({ id }, { headers: { authorization: `Bearer ${tokens.good}` } }).then(
      () => "deleted",
      (reason: unknown) => outcomeOf(ConnectError.from(reason).code),
    );

  const call = async (ask: (id: bigint) => Promise<Outcome>): Promise<void> => {
    while (!over.signal.aborted) {
      const id = tally.next();
      tally.count(id, await ask(id));
      for (const { target, resolve } of waiting) if (tally.deleted.size >= target) resolve();
    }
  };
  const running = Array.from({ length: callers }, (_, i) =>
    call(i % 2 === 0 ? overGrpc : (id) => overRest(address, agent, id)),
  );
  return {
    acknowledged: (count) => new Promise((resolve) => waiting.push({ target: tally.deleted.size + count, resolve })),
    stop: async () => {
      over.abort();
      await Promise.all(running);
      agent.destroy();
    },
  };
}

const outcomeOf = (code: Code): Outcome => (code === Code.NotFound ? "not found" : `error ${code}`);

// Does not use fetch, which may send a request a second time by itself.
async function overRest(address: Address, agent: Agent, id: bigint): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const headers = { authorization: `Bearer ${tokens.good}` };
  request({ ...address, host: address.address, agent, method: "DELETE", path: `/plants/${id}`, headers })
    .on("error", () => resolve("no response"))
    .on("response", (response) => {
      response.on("error", () => resolve("no response"));
      if (response.statusCode === 204) return void response.resume().on("end", () => resolve("deleted"));
      json(response).then(
        (record) => resolve(outcomeOf(Object(record).error)),
        () => resolve("no response"),
      );
    })
    .end();
  return await promise;
}
