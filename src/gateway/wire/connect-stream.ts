import type { ConnectError } from "@connectrpc/connect";
import { endStreamFlag, endStreamToJson } from "@connectrpc/connect/protocol-connect";
import { writeEnvelope } from "./envelope.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Answers a Connect stream that never became a call: status 200, and the error in the message that ends
 * the stream, the only place where clients look for it (Connect protocol, "Streaming-Response").
 */
export function refuseConnectStream(exchange: Exchange, format: "binary" | "json", error: ConnectError): void {
  const end = JSON.stringify(endStreamToJson(new Headers(), error, undefined));
  const contentType = `application/connect+${format === "binary" ? "proto" : "json"}`;
  exchange.answer(200, ["content-type", contentType], writeEnvelope(endStreamFlag, Buffer.from(end)));
}
