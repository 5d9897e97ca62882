import { create, type DescMessage, type Message, type MessageInitShape } from "@bufbuild/protobuf";

/**
 * The messages that a streaming handler yields.
 *
 * Interceptors iterate over this object. Without interceptors, a call reads the source directly and converts each item
 * with {@link toMessage}, which saves an intermediate iterator's promises.
 */
export class YieldedMessages implements AsyncIterable<Message> {
  readonly source: AsyncIterable<MessageInitShape<DescMessage>>;
  readonly #schema: DescMessage;

  constructor(schema: DescMessage, source: AsyncIterable<MessageInitShape<DescMessage>>) {
    this.#schema = schema;
    this.source = source;
  }

  /** Converts an item that a handler yields to a message. */
  toMessage(init: MessageInitShape<DescMessage>): Message {
    return create(this.#schema, init);
  }

  [Symbol.asyncIterator](): AsyncIterator<Message> {
    return convertStream(this.source, (init) => this.toMessage(init))[Symbol.asyncIterator]();
  }
}

/**
 * Converts the messages of a stream. Not a generator, whose `return` would wait for the next message before it ends the
 * stream.
 */
export function convertStream<Item>(
  messages: AsyncIterable<Item>,
  convert: (message: Item) => Message,
): AsyncIterable<Message> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      const end = async (): Promise<IteratorResult<Message>> => {
        await iterator.return?.();
        return { done: true, value: undefined };
      };
      const next = async (): Promise<IteratorResult<Message>> => {
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
