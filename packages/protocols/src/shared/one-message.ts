/** Yields a single message, to use it as a stream. */
export async function* oneMessage<Message>(message: Message): AsyncGenerator<Message, void> {
  yield message;
}
