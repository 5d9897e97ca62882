import { PassThrough } from "node:stream";
import { createInterface } from "node:readline";
import type { HandlerContext } from "@connectrpc/connect";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type FetchGateway } from "../../../gateway/src/index.ts";
import { createMcp } from "../../../gateway/src/mcp/index.ts";
import { within } from "../deadline.ts";
import { reasonOf } from "./call-end.ts";
import { statelessMeta } from "./mcp.ts";
import { serveStdio, type StdioStop } from "../../../proxy/src/command/mcp-stdio.ts";

const service = "greenhouse_v1_GreenhouseService";

/** A client that has started a server. Disposing of it ends the input, and waits for the server. */
export interface StdioPeer extends AsyncDisposable {
  send(message: object | string): void;
  /** Reads the next line. */
  read(): Promise<unknown>;
  readonly done: Promise<void>;
  readonly input: PassThrough;
  readonly output: PassThrough;
}

/** Options for {@link openStdio}. */
export interface StdioPeerOptions {
  readonly token?: string;
  /** Collects what the server prints. */
  readonly errors?: string[];
  /** By default, calls are cancelled as soon as the input ends. */
  readonly stop?: StdioStop;
  /** Whether the client reads the output. Defaults to true. */
  readonly reads?: boolean;
}

/** A promise that is never settled. */
export const never: Promise<never> = new Promise(() => undefined);

/** Starts a server in this process. */
export function openStdio(gateway: Pick<FetchGateway, "fetch">, options: StdioPeerOptions = {}): StdioPeer {
  const { token, errors = [], stop = { requested: never, timeoutMs: 0 }, reads = true } = options;
  const [input, output] = [new PassThrough(), new PassThrough()];
  const lines = reads ? createInterface(output)[Symbol.asyncIterator]() : undefined;
  const err = (text: string): void => void errors.push(text);
  const done = serveStdio(gateway.fetch, { input, output, token, err }, stop);
  return {
    input,
    output,
    done,
    send: (message) => void input.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`),
    read: async () => {
      const { value = "" } = await within(lines?.next() ?? never, "a line");
      return JSON.parse(value);
    },
    [Symbol.asyncDispose]: async () => {
      input.end();
      await within(done, "the server");
    },
  };
}

/** A gateway whose tools are the greenhouse's RPCs. */
export interface StdioGreenhouse extends FetchGateway {
  /** The context of the first `WatchReadings` call. */
  readonly begun: Promise<HandlerContext>;
}

/**
 * Creates a greenhouse. The reading of "token" is the credential. The reading of "slow" waits for `released`, and a
 * stream of "endless" ends only with its call.
 */
export function createGreenhouse(
  admit?: (authorization: string | null) => void,
  released: Promise<unknown> = never,
): StdioGreenhouse {
  const { promise: begun, resolve: begin } = Promise.withResolvers<HandlerContext>();
  const gateway = createGateway({
    routes: (router) => {
      router.service(GreenhouseService, {
        async getReading({ sensor }, { requestHeader, signal }) {
          if (sensor === "slow") await Promise.race([released, reasonOf(signal)]);
          return { sensor: sensor === "token" ? (requestHeader.get("authorization") ?? "") : sensor };
        },
        async *watchReadings({ sensor, count }, context) {
          begin(context);
          for (let at = 1; at <= count; at += 1) yield { sensor, degreesCelsius: at };
          if (sensor === "endless") await reasonOf(context.signal);
        },
      });
    },
    mcp: createMcp({ tools: ["greenhouse.v1.*"] }),
    ...(admit && { admit: ({ authorization }) => admit(authorization) }),
  });
  return { ...gateway, begun };
}

/** Returns a tool call, by its RPC's name. */
export function call(id: unknown, method: string, args: object, meta: object = {}): object {
  const params = { name: `${service}_${method}`, arguments: args, _meta: { ...statelessMeta, ...meta } };
  return { jsonrpc: "2.0", id, method: "tools/call", params };
}
