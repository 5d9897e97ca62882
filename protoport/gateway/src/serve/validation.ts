import type { DescMessage, DescService, Message, Registry } from "@bufbuild/protobuf";
import type { HandlerContext, MethodImplSpec } from "@connectrpc/connect";
import type { MessageCheck } from "../protocols/index.ts";

/** Checks request messages by the rules in their definitions, such as `buf.validate` rules. */
export interface Validation {
  /** Whether the rules may come from an untrusted server. Hostile rules are refused or interrupted. */
  readonly isUntrusted?: boolean;
  /**
   * Prepares the checks for requests to services.
   *
   * @param registry - the types and extensions of the services
   * @returns a function that returns a request type's check, or `undefined` if the type has no rules
   * @throws Error that lists the rules that cannot be compiled
   */
  prepare(services: readonly DescService[], registry: Registry): (type: DescMessage) => MessageCheck | undefined;
}

/**
 * Returns an RPC with a handler that gets only messages that pass the check. The check applies to a unary request, and
 * to each message of a stream. Interceptors run first, so that a caller without permission is refused before rules are
 * evaluated.
 */
export function checkRequests(spec: MethodImplSpec, check: MessageCheck): MethodImplSpec {
  switch (spec.kind) {
    case "unary":
      return {
        ...spec,
        impl: (message: Message, context: HandlerContext) => spec.impl(requireValid(message, check, context), context),
      };
    case "server_streaming":
      return {
        ...spec,
        impl: (message: Message, context: HandlerContext) => spec.impl(requireValid(message, check, context), context),
      };
    case "client_streaming":
      return {
        ...spec,
        impl: (messages: AsyncIterable<Message>, context: HandlerContext) =>
          spec.impl(validMessages(messages, check, context), context),
      };
    case "bidi_streaming":
      return {
        ...spec,
        impl: (messages: AsyncIterable<Message>, context: HandlerContext) =>
          spec.impl(validMessages(messages, check, context), context),
      };
  }
}

function requireValid(message: Message, check: MessageCheck, context: HandlerContext): Message {
  check(message, context);
  return message;
}

/** Yields messages that pass the check. Throws the check's error at the first message that does not pass. */
async function* validMessages(
  messages: AsyncIterable<Message>,
  check: MessageCheck,
  context: HandlerContext,
): AsyncGenerator<Message> {
  for await (const message of messages) yield requireValid(message, check, context);
}
