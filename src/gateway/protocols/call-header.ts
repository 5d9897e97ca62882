import { Code, ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import { parseTimeout } from "@connectrpc/connect/protocol-grpc";
import type { Exchange, HeaderFields } from "../carriers/index.ts";
import { quote } from "../json/index.ts";
import { readAccept } from "./accept.ts";
import { negotiateContentCoding } from "./content-coding.ts";
import type { Procedure } from "./procedure.ts";

/** The header of a call with envelopes, as it was read. */
export interface EnvelopedHeader {
  readonly encodings: Encodings;
  readonly timeoutMs: number | undefined;
  readonly problem: ConnectError | undefined;
  /** The header fields of the answer: its content type, and the encodings if the client must know. */
  readonly headerFields: HeaderFields;
}

/**
 * Reads the header of a call of gRPC or gRPC-Web.
 *
 * @param contentType - of the answer, as a header field
 */
export function readGrpcHeader(
  { common }: Exchange,
  { options: { acceptCompression, maxTimeoutMs } }: Procedure,
  contentType: HeaderFields,
): EnvelopedHeader {
  const { grpcEncoding, grpcAcceptEncoding, grpcTimeout } = common;
  const encodings = negotiateEncodings(acceptCompression, grpcEncoding, grpcAcceptEncoding, "grpc-accept-encoding");
  const { timeoutMs, error } = parseTimeout(shortened(grpcTimeout), maxTimeoutMs);
  const { response, acceptFields } = encodings;
  const encodingFields = response === undefined ? acceptFields : ["grpc-encoding", response.name];
  const headerFields = encodingFields.length === 0 ? contentType : [...contentType, ...encodingFields];
  return { encodings, timeoutMs, problem: encodings.problem ?? error, headerFields };
}

/** Returns the part of a time-out that an error repeats, which is longer than any that is valid. */
export function shortened(timeout: string | null): string | null {
  return timeout === null ? null : timeout.slice(0, timeoutCharactersMax);
}

/** Characters of a time-out: of Connect it has 10 digits at most, of gRPC 8 and a unit. */
const timeoutCharactersMax = 32;

/** How the messages of one call are compressed. */
export interface Encodings {
  /** How the client compresses its messages; `undefined` when it does not. */
  readonly request: Compression | undefined;
  /** How the answer is compressed; `undefined` when it is not. */
  readonly response: Compression | undefined;
  /** `Unimplemented` when the client uses an encoding that we cannot read. */
  readonly problem: ConnectError | undefined;
  /** The field that lists the encodings we can read, for answers that must tell the client. */
  readonly acceptFields: HeaderFields;
}

const none: HeaderFields = [];
const identity: Encodings = { request: undefined, response: undefined, problem: undefined, acceptFields: none };

/**
 * Negotiates the encodings of a call by the rules of gRPC's compression document, which Connect shares.
 *
 * @param sent - the value of the encoding header field
 * @param accepted - the value of the accept-encoding header field
 * @param acceptName - the name of that field, in which a refusal lists the encodings that can be read
 */
export function negotiateEncodings(
  available: readonly Compression[],
  sent: string | null,
  accepted: string | null,
  acceptName: string,
): Encodings {
  if ((sent === null || sent === "identity") && (accepted === null || accepted === "")) return identity;
  let request: Compression | undefined;
  if (sent !== null && sent !== "identity" && sent !== "") {
    request = available.find((compression) => compression.name === sent);
    if (request === undefined) {
      const readable = available.map((compression) => compression.name).join(",");
      const message = `unknown compression ${quote(sent)}: supported encodings are ${readable}`;
      const problem = new ConnectError(message, Code.Unimplemented);
      return { request, response: undefined, problem, acceptFields: [acceptName, readable] };
    }
  }
  // A client that names no accepted encoding accepts the one it sends.
  const response = accepted === null || accepted === "" ? request : preferred(available, accepted);
  return { request, response, problem: undefined, acceptFields: none };
}

let last:
  | { readonly available: unknown; readonly accepted: string; readonly chosen: Compression | undefined }
  | undefined;

/** Chooses the encoding with the highest weight, or of equal ones the first that the client lists. */
function preferred(available: readonly Compression[], accepted: string): Compression | undefined {
  // Clients of gRPC repeat it with every call.
  if (last?.available === available && last.accepted === accepted) return last.chosen;
  const listed = readAccept(accepted).flatMap(({ name }) =>
    available.filter((compression) => compression.name === name),
  );
  const byClient = [...listed, ...available];
  const chosen = negotiateContentCoding(
    accepted,
    byClient.map(({ name }) => name),
  );
  last = { available, accepted, chosen: byClient.find(({ name }) => name === chosen) };
  return last.chosen;
}
