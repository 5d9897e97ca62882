import type { ConnectError } from "@connectrpc/connect";
import { concatBytes, type Exchange, type HeaderFields, toUtf8 } from "../../http/index.ts";
import { trailerFlag, writeEnvelope } from "../envelope/envelope.ts";
import { endTrailer, statusOk } from "../grpc/status.ts";
import { encodeGrpcWebText } from "./text.ts";

/** Writes a complete response: the messages' envelopes in `bytes`, then the trailer. `isText` means base64. */
export function writeResponse(
  exchange: Exchange,
  header: HeaderFields,
  bytes: Uint8Array,
  trailer: Headers,
  error: ConnectError | undefined,
  isText: boolean,
): void {
  const body = concatBytes([bytes, trailerEnvelope(trailer, error)]);
  exchange.respond(200, header, isText ? encodeGrpcWebText(body) : body);
}

// The last envelope of nearly every response, which is encoded only once.
const statusOkEnvelope = writeEnvelope(trailerFlag, toUtf8("grpc-status: 0\r\n"));

/** Returns a response's last envelope, which contains the trailer section. */
export function trailerEnvelope(trailer: Headers, error: ConnectError | undefined): Uint8Array {
  const fields = endTrailer(trailer, error);
  if (fields === statusOk) return statusOkEnvelope;
  let section = "";
  for (let at = 0; at < fields.length; at += 2) section += `${fields[at]}: ${fields[at + 1]}\r\n`;
  return writeEnvelope(trailerFlag, toUtf8(section));
}
