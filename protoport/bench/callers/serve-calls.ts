import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { makeBook } from "../../testing/src/gateway/books.ts";
import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";
import { type LoadResult, percentilesOf } from "../load/load.ts";
import { startOnLoadCore } from "../server-process.ts";
import { EchoService } from "../servers/echo-service.ts";
import { listen, serve } from "../servers/serve.ts";

/** The RPC that callers call, and the request. */
export interface CalledMethod {
  readonly desc: DescMethodUnary;
  readonly input: Message;
}

/** Makes one call. Rejects when the call fails. */
export type Call = () => Promise<unknown>;

/** Number of concurrent calls. */
const callers = 64;

const methods: Readonly<Record<string, CalledMethod & { readonly server: string }>> = {
  small: {
    desc: EchoService.method.echo,
    input: create(BytesValueSchema, { value: Buffer.alloc(16) }),
    server: "../servers/echo.ts",
  },
  book: { desc: LibraryService.method.createBook, input: makeBook(0), server: "../servers/library.ts" },
};

/**
 * Runs a caller as the driver's child process. The caller calls a separate server on the load's core. The driver
 * connects to the caller's port, writes the number of seconds for which to make calls, and reads the result.
 */
export async function serveCalls(connect: (baseUrl: string, method: CalledMethod) => Call): Promise<void> {
  const { CALLS: name = "small" } = process.env;
  const method = methods[name];
  if (method === undefined) throw new Error(`CALLS must be small or book, got "${name}"`);
  const { port } = await startOnLoadCore(fileURLToPath(new URL(method.server, import.meta.url)));
  const call = connect(`http://127.0.0.1:${String(port)}`, method);
  const control = createServer((socket) => {
    socket.once("data", (seconds) => {
      // The promise from `callFor` never rejects.
      void callFor(call, Number(seconds)).then((result) => socket.end(JSON.stringify(result)));
    });
  });
  await serve(() => listen(control));
}

async function callFor(call: Call, durationS: number): Promise<LoadResult> {
  const latencies: number[] = [];
  const startedMs = performance.now();
  const untilMs = startedMs + durationS * 1_000;
  let failures = 0;
  const run = async (): Promise<void> => {
    for (let begunMs = performance.now(); begunMs < untilMs; begunMs = performance.now()) {
      await call().catch(() => failures++);
      latencies.push((performance.now() - begunMs) * 1_000);
    }
  };
  await Promise.all(Array.from({ length: callers }, run));
  return {
    requests: latencies.length,
    failures,
    durationS: (performance.now() - startedMs) / 1_000,
    latencyUs: percentilesOf(Float64Array.from(latencies)),
  };
}
