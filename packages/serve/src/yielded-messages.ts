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

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    for await (const init of this.source) yield this.toMessage(init);
  }
}
