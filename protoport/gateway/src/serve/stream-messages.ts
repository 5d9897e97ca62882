import type { Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { problem } from "../protobuf/index.ts";

/**
 * The messages of a stream. Reading a message converts an item of the source.
 *
 * Only interceptors iterate over this object. Without interceptors, a call reads the source directly, so that forwarded
 * messages are not decoded, and a handler's messages need no intermediate iterator. The promises of an intermediate
 * iterator would cost more than the conversion.
 */
export class ConvertedMessages<Item> implements AsyncIterable<Message> {
  readonly source: AsyncIterable<Item>;
  readonly convert: (item: Item) => Message;

  constructor(source: AsyncIterable<Item>, convert: (item: Item) => Message) {
    this.source = source;
    this.convert = convert;
  }

  [Symbol.asyncIterator](): AsyncIterator<Message> {
    return convertStream(this.source, this.convert)[Symbol.asyncIterator]();
  }
}

/** Returns the source of {@link ConvertedMessages}, or any other stream itself. */
export function sourceOf(messages: AsyncIterable<Message>): AsyncIterable<unknown> {
  return messages instanceof ConvertedMessages ? messages.source : messages;
}

/** Wraps the iterator of a stream. Messages that no code reads are not converted. */
export function wrapMessages(
  messages: AsyncIterable<Message>,
  wrap: <Item>(items: AsyncIterable<Item>) => AsyncIterable<Item>,
): AsyncIterable<Message> {
  if (!(messages instanceof ConvertedMessages)) return wrap(messages);
  return new ConvertedMessages<unknown>(wrap(messages.source), messages.convert);
}

/** Converts a stream's messages. A generator's `return` would wait for the next message before ending the stream. */
export function convertStream<Item, Converted>(
  messages: AsyncIterable<Item>,
  convert: (message: Item) => Converted,
): AsyncIterable<Converted> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      const end = async (): Promise<IteratorResult<Converted>> => {
        await iterator.return?.();
        return { done: true, value: undefined };
      };
      const next = async (): Promise<IteratorResult<Converted>> => {
        const result = await iterator.next();
        if (result.done === true) return result;
        try {
          return { done: false, value: convert(result.value) };
        } catch (error) {
          await end();
          throw error;
        }
      };
      return { next, return: end };
    },
  };
}

export function isAsyncIterable<Item>(value: object): value is AsyncIterable<Item> {
  return Symbol.asyncIterator in value;
}

/** Returns the only message of a stream. @throws ConnectError `Unimplemented` if the stream has no message */
export async function onlyMessage<Item>(messages: AsyncIterable<Item>): Promise<Item> {
  for await (const message of messages) return message;
  // In gRPC, a call with too few messages has the code Unimplemented ("Status codes").
  throw problem("ERR_PROTOCOL", "the message is missing", { code: Code.Unimplemented });
}
