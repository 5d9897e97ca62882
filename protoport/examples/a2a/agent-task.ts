// One task: its state, and the streams that follow it.
import { clone, create, isMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { randomUUID } from "node:crypto";
import { EventEmitter, on } from "node:events";
import {
  ArtifactSchema,
  type Message,
  MessageSchema,
  type PartSchema,
  Role,
  type StreamResponse,
  StreamResponseSchema,
  type Task,
  TaskSchema,
  TaskState,
  TaskStatusSchema,
} from "../gen/lf/a2a/v1/a2a_pb.ts";

/** The content of a message. */
export type Parts = MessageInitShape<typeof PartSchema>[];

/** What an agent does with a task: it changes its state, or adds an artifact, or appends to one. */
export type Step =
  | { readonly state: TaskState; readonly parts?: Parts }
  | { readonly artifactId: string; readonly parts: Parts; readonly append?: boolean; readonly lastChunk?: boolean };

/** The states in which a task waits for a message (A2A §3.2.2). */
const interrupted: ReadonlySet<TaskState> = new Set([TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED]);

/** The states that a task never leaves. */
const terminal: ReadonlySet<TaskState> = new Set([
  TaskState.COMPLETED,
  TaskState.FAILED,
  TaskState.CANCELED,
  TaskState.REJECTED,
]);

/** The messages that a task keeps, so that a long conversation does not fill the memory. */
const historyMax = 100;

/** Returns a content of one text. */
export function text(value: string): Parts {
  return [{ content: { case: "text", value } }];
}

/** Creates a message of the agent. */
export function agentMessage(parts: Parts, contextId: string, taskId = ""): Message {
  return create(MessageSchema, { messageId: randomUUID(), contextId, taskId, role: Role.AGENT, parts });
}

/** A task, while the agent works on it and afterwards. */
export class AgentTask {
  /** When its state changed, in nanoseconds of a monotonic clock: tasks have different times. */
  updated = 0n;
  readonly #task: Task;
  readonly #canceled = new AbortController();
  readonly #events = new EventEmitter().setMaxListeners(0);

  constructor(contextId: string) {
    this.#task = create(TaskSchema, { id: randomUUID(), contextId });
    this.#setState(TaskState.SUBMITTED);
  }

  get id(): string {
    return this.#task.id;
  }

  get contextId(): string {
    return this.#task.contextId;
  }

  get state(): TaskState {
    return this.#task.status?.state ?? TaskState.UNSPECIFIED;
  }

  /** When its state changed, in milliseconds since 1970. */
  get timestampMs(): number {
    return this.#task.status?.timestamp === undefined ? 0 : timestampMs(this.#task.status.timestamp);
  }

  /** Whether it has reached a terminal state. */
  get isOver(): boolean {
    return terminal.has(this.state);
  }

  /** Whether the agent works on it. */
  get isRunning(): boolean {
    return !this.isOver && !interrupted.has(this.state);
  }

  /** Returns a copy, with the newest messages of its history. */
  view(historyLength: number = historyMax): Task {
    const view = clone(TaskSchema, this.#task);
    view.history = historyLength === 0 ? [] : view.history.slice(-historyLength);
    return view;
  }

  /** Adds a message and takes steps until the last one, or until it is canceled. Never rejects. */
  async run(message: Message, steps: (signal: AbortSignal) => AsyncIterable<Step>): Promise<void> {
    this.#setState(TaskState.WORKING);
    this.#remember(message);
    try {
      for await (const step of steps(this.#canceled.signal)) {
        if (this.isOver) return;
        if ("state" in step) this.#setState(step.state, step.parts);
        else this.#addArtifact(step);
      }
      if (this.isRunning) this.#setState(TaskState.COMPLETED);
    } catch (error) {
      if (this.isOver) return;
      console.error(error);
      this.#setState(TaskState.FAILED);
    }
  }

  /** Cancels it. It must not be over. */
  cancel(): void {
    this.#setState(TaskState.CANCELED);
    this.#canceled.abort();
  }

  /**
   * Yields the task and then its updates, until the agent stops working on it, or until it is over.
   *
   * @throws AbortError if the signal is aborted
   */
  async *follow(signal: AbortSignal, end: "stop" | "over"): AsyncGenerator<StreamResponse> {
    const updates = on(this.#events, "update", { signal, close: [end] });
    const continues = end === "stop" ? this.isRunning : !this.isOver;
    try {
      yield create(StreamResponseSchema, { payload: { case: "task", value: this.view() } });
      if (continues) yield* responsesOf(updates);
    } finally {
      await updates.return?.();
    }
  }

  #remember(message: Message): void {
    const { id: taskId, contextId } = this;
    this.#task.history = [...this.#task.history, { ...message, taskId, contextId }].slice(-historyMax);
  }

  #setState(state: TaskState, parts?: Parts): void {
    const { id: taskId, contextId } = this;
    const before = this.#task.status?.message;
    if (before !== undefined) this.#remember(before);
    const message = parts && agentMessage(parts, contextId, taskId);
    this.#task.status = create(TaskStatusSchema, { state, timestamp: timestampNow(), ...(message && { message }) });
    this.updated = process.hrtime.bigint();
    this.#publish({ case: "statusUpdate", value: { taskId, contextId, status: this.#task.status } });
    if (!this.isRunning) this.#events.emit("stop");
    if (this.isOver) this.#events.emit("over");
  }

  #addArtifact({ artifactId, parts, append = false, lastChunk = false }: Extract<Step, { artifactId: string }>): void {
    const { id: taskId, contextId } = this;
    const artifact = create(ArtifactSchema, { artifactId, parts });
    const known = append && this.#task.artifacts.find((each) => each.artifactId === artifactId);
    if (known) known.parts.push(...artifact.parts);
    else this.#task.artifacts.push(clone(ArtifactSchema, artifact));
    this.#publish({ case: "artifactUpdate", value: { taskId, contextId, artifact, append, lastChunk } });
  }

  #publish(payload: MessageInitShape<typeof StreamResponseSchema>["payload"]): void {
    this.#events.emit("update", create(StreamResponseSchema, payload && { payload }));
  }
}

async function* responsesOf(events: AsyncIterable<unknown[]>): AsyncGenerator<StreamResponse> {
  for await (const [event] of events) if (isMessage(event, StreamResponseSchema)) yield event;
}
