/** Yields a single message: as a stream, what an RPC has one of. */
export async function* oneMessage<Message>(message: Message): AsyncGenerator<Message, void> {
  yield message;
}
