import { create, type DescMethodBiDiStreaming } from "@bufbuild/protobuf";
import type { StreamResponse, Transport } from "@connectrpc/connect";
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  type ServerReflectionResponseSchema,
} from "@plantstore/gateway/internal/gen/grpc/reflection/v1/reflection_pb.js";

/** What is asked. */
export type Question = Extract<ServerReflectionRequest["messageRequest"], { value: string }>;
/** What is answered. */
export type Answer = ServerReflectionResponse["messageResponse"];

type Method = DescMethodBiDiStreaming<typeof ServerReflectionRequestSchema, typeof ServerReflectionResponseSchema>;
type Opened = StreamResponse<typeof ServerReflectionRequestSchema, typeof ServerReflectionResponseSchema>;

/** Questions that may wait for their answers: few enough that a server which reads no further never holds up both. */
const questionsAtOnce = 100;

/** A call of server reflection: questions, and their answers in the same order. */
export class ReflectionStream {
  readonly #waiting: Question[] = [];
  readonly #opened: Promise<Opened>;
  #answers: AsyncIterator<ServerReflectionResponse> | undefined;
  #wake: (() => void) | undefined;

  constructor(transport: Transport, method: Method, header: Readonly<Record<string, string>>, signal: AbortSignal) {
    this.#opened = transport.stream(method, signal, undefined, header, this.#questions());
    // A rejection reaches those that wait for an answer; until somebody does, it is not unhandled.
    this.#opened.catch(() => undefined);
  }

  /**
   * Asks, and resolves to an answer for each question.
   *
   * @throws ConnectError if the call fails; Error if it ends before everything is answered
   */
  async ask(questions: readonly Question[]): Promise<readonly Answer[]> {
    const answers: Answer[] = [];
    for (let at = 0; at < questions.length; at += questionsAtOnce) {
      const asked = questions.slice(at, at + questionsAtOnce);
      this.#waiting.push(...asked);
      this.#wake?.();
      // A server may send its header with the first answer only.
      this.#answers ??= (await this.#opened).message[Symbol.asyncIterator]();
      for (const _ of asked) answers.push(await this.#next(this.#answers));
    }
    return answers;
  }

  async #next(answers: AsyncIterator<ServerReflectionResponse>): Promise<Answer> {
    const { done, value } = await answers.next();
    if (done === true) throw new Error("its reflection ends before it has answered everything");
    return value.messageResponse;
  }

  /** Asks no more; what the server still sends is not read. */
  end(): void {
    this.#answers?.return?.().catch(() => undefined);
  }

  async *#questions(): AsyncGenerator<ServerReflectionRequest> {
    for (;;) {
      const messageRequest = this.#waiting.shift();
      if (messageRequest !== undefined) yield create(ServerReflectionRequestSchema, { messageRequest });
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
