/** Returns a stream with a single message. */
export async function* oneMessage<Message>(message: Message): AsyncGenerator<Message, void> {
  yield message;
}
