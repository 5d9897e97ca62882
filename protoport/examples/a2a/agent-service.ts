// The RPCs of A2A for an agent, over gRPC and REST.
import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { randomUUID } from "node:crypto";
import {
  A2AService,
  type Message,
  type SendMessageResponse,
  SendMessageResponseSchema,
  StreamResponseSchema,
  type Task,
} from "../gen/lf/a2a/v1/a2a_pb.ts";
import { agentMessage, type AgentTask, type Parts, type Step } from "./agent-task.ts";
import { a2aError, invalidField } from "./errors.ts";
import { Tasks } from "./tasks.ts";

/**
 * What an agent does with a message: it responds with another message, or takes the steps of a task. The signal is
 * aborted when the task is canceled.
 */
export type Skill = (message: Message) => Parts | ((signal: AbortSignal) => AsyncIterable<Step>);

/** Registers an agent with this skill. */
export function agentRoutes(skill: Skill): (router: ConnectRouter) => void {
  const tasks = new Tasks();
  const start = (message: Message | undefined): Message | AgentTask => startTask(message, skill, tasks);
  return (router) =>
    router.service(A2AService, {
      async sendMessage({ message, configuration }, { signal }): Promise<SendMessageResponse> {
        const historyLength = requireLength(configuration?.historyLength);
        const started = start(message);
        if ("parts" in started)
          return create(SendMessageResponseSchema, { payload: { case: "message", value: started } });
        if (configuration?.returnImmediately !== true) await untilStopped(started, signal);
        return create(SendMessageResponseSchema, { payload: { case: "task", value: started.view(historyLength) } });
      },

      async *sendStreamingMessage({ message }, { signal }) {
        const started = start(message);
        if ("parts" in started) yield create(StreamResponseSchema, { payload: { case: "message", value: started } });
        else yield* started.follow(signal, "stop");
      },

      getTask: ({ id, historyLength }): Task => tasks.get(id).view(requireLength(historyLength)),

      listTasks(request) {
        requireLength(request.historyLength);
        return tasks.list(request);
      },

      cancelTask({ id }): Task {
        const task = tasks.get(id);
        if (task.isOver) throw a2aError("TASK_NOT_CANCELABLE", "the task is over");
        task.cancel();
        return task.view();
      },

      async *subscribeToTask({ id }, { signal }) {
        const task = tasks.get(id);
        if (task.isOver) throw a2aError("UNSUPPORTED_OPERATION", "the task is over and has no more updates");
        yield* task.follow(signal, "over");
      },

      createTaskPushNotificationConfig: refuseWebhooks,
      getTaskPushNotificationConfig: refuseWebhooks,
      listTaskPushNotificationConfigs: refuseWebhooks,
      deleteTaskPushNotificationConfig: refuseWebhooks,
      getExtendedAgentCard() {
        throw a2aError("UNSUPPORTED_OPERATION", "this agent has no extended card");
      },
    });
}

/**
 * Refuses calls in another version of the protocol, which a header field or a parameter of the query names (A2A §3.6).
 * Without either, it is 0.3.
 */
export const requireVersion: Interceptor = (next) => (request) => {
  const fromQuery = URL.parse(request.url)?.searchParams.get("A2A-Version");
  const version = request.header.get("a2a-version") || fromQuery || "0.3";
  if (/^1\.0(\.\d+)?$/.test(version)) return next(request);
  throw a2aError("VERSION_NOT_SUPPORTED", `A2A-Version must be 1.0, got ${JSON.stringify(version)}`);
};

/** Returns the response to a message, or the task that it started or continued. */
function startTask(message: Message | undefined, skill: Skill, tasks: Tasks): Message | AgentTask {
  if (message === undefined) throw invalidField("message", "is required");
  if (message.messageId === "") throw invalidField("message.message_id", "is required");
  if (message.parts.length === 0) throw invalidField("message.parts", "must have at least one part");
  const known = message.taskId === "" ? undefined : tasks.get(message.taskId);
  if (known !== undefined) requireWaiting(known, message);
  const contextId = known?.contextId ?? (message.contextId || randomUUID());
  const reply = skill(message);
  if (typeof reply !== "function") return agentMessage(reply, contextId, known?.id);
  const task = known ?? tasks.create(contextId);
  void task.run(message, reply);
  return task;
}

function requireWaiting(task: AgentTask, { contextId }: Message): void {
  if (contextId !== "" && contextId !== task.contextId)
    throw invalidField("message.context_id", "must be that of the task");
  if (task.isOver) throw a2aError("UNSUPPORTED_OPERATION", "the task is over");
  if (task.isRunning) throw a2aError("UNSUPPORTED_OPERATION", "the task does not wait for a message");
}

function requireLength(historyLength: number | undefined): number | undefined {
  if (historyLength === undefined || historyLength >= 0) return historyLength;
  throw invalidField("history_length", "must not be negative");
}

async function untilStopped(task: AgentTask, signal: AbortSignal): Promise<void> {
  for await (const _ of task.follow(signal, "stop"));
}

function refuseWebhooks(): never {
  throw a2aError("PUSH_NOTIFICATION_NOT_SUPPORTED", "this agent has no webhooks");
}
