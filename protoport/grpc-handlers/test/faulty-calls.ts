import type { sendUnaryData, ServerDuplexStream, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { TestGarden } from "./garden.ts";
import type { Message } from "./grpc-js-client.ts";

export type Callback = sendUnaryData<Message>;

export const methods = ["GetTree", "AddTrees", "ListTrees", "TradeTrees"] as const;

export const allHandlers = (
  handler: (call: ServerDuplexStream<Message, Message>, callback?: Callback) => unknown,
): UntypedServiceImplementation => ({ getTree: handler, addTrees: handler, listTrees: handler, tradeTrees: handler });

/** Makes a Connect call with the server's deadline, which begins after the client has connected. Returns the body. */
export async function callWithDeadline({ address }: TestGarden, method: string, messages = 1): Promise<string> {
  const isStream = method !== "GetTree";
  const message = [0, 0, 0, 0, 2, ...Buffer.from("{}")];
  const body = isStream ? Uint8Array.from(Array.from({ length: messages }, () => message).flat()) : "{}";
  const headers = { "content-type": `application/${isStream ? "connect+" : ""}json`, "connect-timeout-ms": "100" };
  const url = `http://127.0.0.1:${address.port}/garden.v1.Garden/${method}`;
  return await (await fetch(url, { method: "POST", body, headers })).text();
}

export function messageOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}

export function read(call: ServerDuplexStream<Message, Message>): void {
  call.resume();
}

export function failing(): never {
  throw new RangeError("index out of range");
}
