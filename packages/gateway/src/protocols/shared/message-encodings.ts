import { Code, type ConnectError } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { HeaderFields } from "../../exchange/index.ts";
import { problem } from "../../errors/index.ts";
import { quote } from "../../messages/json/index.ts";
import { negotiateCoding, readAccept } from "./negotiation.ts";

/** How the messages of one call are compressed. */
export interface MessageEncodings {
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
const identity: MessageEncodings = { request: undefined, response: undefined, problem: undefined, acceptFields: none };

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
): MessageEncodings {
  if (sent === null && accepted === null) return identity;
  let request: Compression | undefined;
  if (sent !== null && sent !== "identity" && sent !== "") {
    request = available.find((compression) => compression.name === sent);
    if (request === undefined) {
      const readable = available.map((compression) => compression.name).join(",");
      const message = `unknown compression ${quote(sent)}: supported encodings are ${readable}`;
      // The code that gRPC's compression document and Connect's protocol prescribe.
      const unsupported = problem("ERR_ENCODING_UNSUPPORTED", message, { code: Code.Unimplemented });
      return { request, response: undefined, problem: unsupported, acceptFields: [acceptName, readable] };
    }
  }
  // A client that names no accepted encoding accepts the one it sends.
  const response = accepted === null || accepted === "" ? request : lastChoice.preferred(available, accepted);
  return { request, response, problem: undefined, acceptFields: none };
}

/** Remembers one choice, because clients of gRPC repeat what they accept with every call. */
class LastChoice {
  #available: readonly Compression[] | undefined;
  #accepted: string | undefined;
  #chosen: Compression | undefined;

  /** Chooses the encoding with the highest weight, or of equal ones the first that the client lists. */
  preferred(available: readonly Compression[], accepted: string): Compression | undefined {
    if (this.#available === available && this.#accepted === accepted) return this.#chosen;
    const listed = readAccept(accepted).flatMap(({ name }) =>
      available.filter((compression) => compression.name === name),
    );
    this.#chosen = negotiateCoding(accepted, [...listed, ...available]);
    this.#available = available;
    this.#accepted = accepted;
    return this.#chosen;
  }
}

const lastChoice = new LastChoice();
