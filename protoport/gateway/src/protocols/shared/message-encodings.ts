import { Code, type ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { HeaderFields } from "../../http/index.ts";
import { problem, quote } from "../../protobuf/index.ts";
import { negotiateCoding, readAccept } from "./negotiation.ts";

/** The compressions for one call's messages. */
export interface MessageEncodings {
  /** The request messages' compression, or `undefined` for none. */
  readonly request: Compression | undefined;
  /** The response messages' compression, or `undefined` for none. */
  readonly response: Compression | undefined;
  /** The error `Unimplemented` if the client uses an unsupported encoding. */
  readonly problem: ConnectError | undefined;
  /** The field that lists the supported encodings, or empty if the client's encoding is supported. */
  readonly acceptEncodingFields: HeaderFields;
}

const noFields: HeaderFields = [];
const identity: MessageEncodings = {
  request: undefined,
  response: undefined,
  problem: undefined,
  acceptEncodingFields: noFields,
};

/**
 * Negotiates a call's encodings as defined in the gRPC compression document. Connect follows the same rules.
 *
 * @param sent - the value of the header field with the request messages' encoding
 * @param accepted - the value of the header field with the encodings that the client accepts
 * @param acceptName - the name of the accept field, in which a refusal lists the supported encodings
 */
export function negotiateEncodings(
  available: readonly Compression[],
  sent: string | null,
  accepted: string | null,
  acceptName: string,
): MessageEncodings {
  if (sent === null && accepted === null) return identity;
  let request: Compression | undefined;
  if (sent !== null && sent !== "identity" && sent !== "") {
    request = available.find((compression) => compression.name === sent);
    if (request === undefined) {
      const supported = available.map((compression) => compression.name).join(",");
      const message = `unknown compression ${quote(sent)}: supported encodings are ${supported}`;
      // The gRPC compression document and the Connect protocol require the code Unimplemented.
      const unsupported = problem("ERR_ENCODING_UNSUPPORTED", message, {
        code: Code.Unimplemented,
        option: "acceptCompression",
      });
      return { request, response: undefined, problem: unsupported, acceptEncodingFields: [acceptName, supported] };
    }
  }
  // A client that lists no accepted encodings accepts the encoding that it sends.
  const response = accepted === null || accepted === "" ? request : lastChoice.preferred(available, accepted);
  return { request, response, problem: undefined, acceptEncodingFields: noFields };
}

/** Caches the last choice, because gRPC clients send the same list with every call. */
class LastChoice {
  #available: readonly Compression[] | undefined;
  #accepted: string | undefined;
  #responseCompression: Compression | undefined;

  /** Returns the encoding with the highest weight. The client's list decides between equal weights. */
  preferred(available: readonly Compression[], accepted: string): Compression | undefined {
    if (this.#available === available && this.#accepted === accepted) return this.#responseCompression;
    const listed = readAccept(accepted).flatMap(({ name }) =>
      available.filter((compression) => compression.name === name),
    );
    this.#responseCompression = negotiateCoding(accepted, [...listed, ...available]);
    this.#available = available;
    this.#accepted = accepted;
    return this.#responseCompression;
  }
}

const lastChoice = new LastChoice();
