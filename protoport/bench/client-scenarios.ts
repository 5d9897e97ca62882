import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { ownName } from "./figures.ts";
import type { Load, LoadResult } from "./load/load.ts";
import { type Scenario, server, type Subject } from "./scenarios.ts";

const titles = { small: "a message of 16 bytes", book: "a book" };

/** Scenarios that measure clients. Each client calls a separate server. */
export const clientScenarios: readonly Scenario[] = (["small", "book"] as const).map((calls) => ({
  name: `client-${calls}`,
  title: `The caller's side: ${titles[calls]} both ways as unary gRPC, one connection, 64 callers`,
  shape: { httpMethod: "POST", path: "", header: {}, body: undefined, connections: 1, streams: 64 },
  load: runCaller,
  probe: async (port) => {
    const { failures } = await runCaller(port, 0.05);
    if (failures > 0) throw new Error(`${String(failures)} calls failed`);
  },
  subjects: ["node:http2", ownName, "grpc-js", "connect-node"].map((name) => caller(name, calls)),
}));

/** Lets a caller make calls for some seconds, and returns its result. */
async function runCaller(...[port, durationS]: Parameters<Load>): Promise<LoadResult> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(String(durationS));
  const result: LoadResult = JSON.parse(await text(socket));
  return result;
}

function caller(name: string, calls: string): Subject {
  const program = name === ownName ? "own" : name.replace(":", "-");
  return server(name, `callers/${program}`, { CALLS: calls });
}
