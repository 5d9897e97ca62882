import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { problem, type BoundFields, isRequiredField } from "../../../protobuf/index.ts";
import type { RequestUrl, RestRequest } from "./http-body.ts";
import { RuleProblem } from "./http-rule.ts";

/**
 * The messages in one client stream. Only the first message gets the content type and the fields in the URL. Later
 * messages must not set fields of the path either, so that no message overrides the path.
 */
export interface RequestStream {
  /** Reads the next message. @throws ConnectError `InvalidArgument` that names the field */
  read(body: Uint8Array): Message;
  /**
   * Ends the stream.
   *
   * @returns the message for an empty body of bytes, such as an empty file, or otherwise `undefined`
   * @throws ConnectError `InvalidArgument` if the URL sets fields and the stream has no message for these fields
   */
  end(): Message | undefined;
}

/** Only the first message in a stream has a `url`. */
type ReadStreamed = (contentType: string | null, body: Uint8Array, url: RequestUrl | undefined) => Message;

/** Opens a request stream. @param rule - whether the rule's body is bytes, and whether the URL sets fields */
export function openRequestStream(
  request: Omit<RestRequest, "body">,
  { isRaw, setsFields }: { readonly isRaw: boolean; readonly setsFields: () => boolean },
  readMessage: ReadStreamed,
): RequestStream {
  let begun = false;
  const read = (body: Uint8Array): Message => {
    const first = begun ? undefined : request;
    begun = true;
    return readMessage(first?.contentType ?? null, body, first);
  };
  return {
    read,
    end() {
      if (begun) return undefined;
      if (isRaw) return read(new Uint8Array(0));
      if (!setsFields()) return undefined;
      throw problem("ERR_PROTOCOL", "the stream has no message, but the URL sets fields of the first one");
    },
  };
}

/**
 * Checks that a rule can be applied to a message stream. The rule must have a body. Messages after the first message
 * have neither path nor query, so the body must be able to set all required fields.
 *
 * @throws RuleProblem with the reason if the rule cannot be applied
 */
export function requireStreamable(input: DescMessage, body: string, boundByPath: BoundFields): void {
  if (body === "") throw new RuleProblem("a client-streaming RPC must have a body");
  const notInBody = body === "*" ? [] : input.fields.filter((field) => field.name !== body && isRequiredField(field));
  const unsettable = notInBody[0] ?? findRequired(boundByPath);
  if (unsettable !== undefined) {
    throw new RuleProblem(`only the first message of the stream can set the required field "${unsettable.name}"`);
  }
}

function findRequired(bound: BoundFields): DescField | undefined {
  for (const [field, nested] of bound) {
    const found = nested !== "whole" ? findRequired(nested) : isRequiredField(field) ? field : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
