import type { Message } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { problem } from "@plantstore/protobuf";

/**
 * A stream's messages, which are converted from the items of a source when they are read.
 *
 * Interceptors iterate over this object. If none does, a call reads the source directly: a forwarded message is not
 * decoded, and the messages of a handler need no intermediate iterator, whose promises cost more than the conversion.
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

/** Returns what a stream's messages are converted from if nobody has read them; otherwise the stream itself. */
export function sourceOf(messages: AsyncIterable<Message>): AsyncIterable<unknown> {
  return messages instanceof ConvertedMessages ? messages.source : messages;
}

/** Wraps the iterator of a stream, without converting messages that are not read. */
export function wrapMessages(
  messages: AsyncIterable<Message>,
  wrap: <Item>(items: AsyncIterable<Item>) => AsyncIterable<Item>,
): AsyncIterable<Message> {
  if (!(messages instanceof ConvertedMessages)) return wrap(messages);
  return new ConvertedMessages<unknown>(wrap(messages.source), messages.convert);
}

/**
 * Converts the messages of a stream. Not a generator, whose `return` would wait for the next message before it ends the
 * stream.
 */
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

/** Returns the message of a stream with exactly one. @throws ConnectError `Unimplemented` if there is none */
export async function onlyMessage<Item>(messages: AsyncIterable<Item>): Promise<Item> {
  for await (const message of messages) return message;
  // gRPC, "Status codes". A call with too few messages is unimplemented.
  throw problem("ERR_PROTOCOL", "the message is missing", { code: Code.Unimplemented });
}
