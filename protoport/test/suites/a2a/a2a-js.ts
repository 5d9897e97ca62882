import { randomUUID } from "node:crypto";
import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
  taskStateToJSON,
} from "@a2a-js/sdk";
import { type Client, ClientFactory, RestTransportFactory } from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";
import type { Binding, Results } from "./results.ts";

/** Calls an agent with the A2A client for JavaScript, like client.py. */
export async function callFromJavaScript(url: string, binding: Binding): Promise<Results> {
  const transport = binding === "GRPC" ? new GrpcTransportFactory() : new RestTransportFactory();
  const client = await new ClientFactory({ transports: [transport] }).createFromUrl(url);
  const { task, results } = await sendMessages(client);
  return { ...results, ...(await callTasks(client, task)), ...(await provokeErrors(client, task)) };
}

async function sendMessages(client: Client): Promise<{ task: Task; results: Results }> {
  const task = await sendForTask(client, "water 2");
  const asking = await sendForTask(client, "water");
  const results = {
    reply: describeResult(await send(client, "hello")),
    task: describeTask(task),
    stream: await collect(client.sendMessageStream(requestOf("water 2"))),
    "stream of a reply": await collect(client.sendMessageStream(requestOf("hello"))),
    question: describeTask(asking),
    "continued task": describeTask(await sendForTask(client, "1", { taskId: asking.id })),
  };
  return { task, results };
}

async function callTasks(client: Client, task: Task): Promise<Results> {
  const got = await client.getTask({ tenant: "", id: task.id, historyLength: 0 });
  const contextId = randomUUID();
  for (const text of ["water", "water"]) await send(client, text, { contextId });
  const page = await list(client, contextId, "");
  const rest = await list(client, contextId, page.nextPageToken);
  const slow = await sendForTask(client, "water 100", {}, true);
  const followed = await sendForTask(client, "water 2", {}, true);
  const updates = await collect(client.resubscribeTask({ tenant: "", id: followed.id }));
  return {
    get: [got.id === task.id, got.history.length, ...describeTask(got)],
    list: [
      new Set([...page.tasks, ...rest.tasks].map(({ id }) => id)).size,
      page.totalSize,
      page.nextPageToken !== "",
      rest.nextPageToken,
    ],
    cancel: describeTask(await client.cancelTask({ tenant: "", id: slow.id, metadata: {} }))[0],
    subscribe: [updates[0]?.[0], updates.at(-1)],
    "subscribe afterwards": await outcome(collect(client.resubscribeTask({ tenant: "", id: followed.id }))),
  };
}

async function provokeErrors(client: Client, task: Task): Promise<Results> {
  const photo: Part = {
    ...partOf(""),
    content: { $case: "url", value: "https://example.com" },
    mediaType: "image/png",
  };
  return {
    "cancel again": await outcome(client.cancelTask({ tenant: "", id: task.id, metadata: {} })),
    "get unknown": await outcome(client.getTask({ tenant: "", id: "none" })),
    "invalid message": await outcome(send(client, "hello", { parts: [] })),
    "invalid stream": await outcome(collect(client.sendMessageStream(requestOf("hello", { parts: [] })))),
    "unsupported content": await outcome(send(client, "hello", { parts: [photo] })),
    // The client itself would refuse the call, because the card declares no webhooks.
    webhook: await outcome(
      client.transport.getTaskPushNotificationConfig(
        { tenant: "", taskId: task.id, id: "none" },
        { serviceParameters: { "A2A-Version": "1.0" } },
      ),
    ),
  };
}

type SendParameters = Parameters<Client["sendMessage"]>[0];

function requestOf(text: string, fields: Partial<Message> = {}, returnImmediately = false): SendParameters {
  const message: Message = {
    messageId: randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [partOf(text)],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...fields,
  };
  const configuration = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately };
  return { tenant: "", message, configuration, metadata: undefined };
}

function partOf(text: string): Part {
  return { content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" };
}

async function send(client: Client, ...args: Parameters<typeof requestOf>): Promise<Message | Task> {
  return await client.sendMessage(requestOf(...args));
}

async function sendForTask(client: Client, ...args: Parameters<typeof requestOf>): Promise<Task> {
  const result = await send(client, ...args);
  if ("status" in result) return result;
  throw new Error(`expected a task, got ${JSON.stringify(result)}`);
}

async function list(client: Client, contextId: string, pageToken: string): ReturnType<Client["listTasks"]> {
  const filter = { tenant: "", contextId, status: TaskState.TASK_STATE_UNSPECIFIED };
  return await client.listTasks({ ...filter, pageSize: 1, pageToken, statusTimestampAfter: undefined });
}

async function outcome(result: Promise<unknown>): Promise<unknown> {
  try {
    return await result;
  } catch (error) {
    return error instanceof Error ? [error.name, error.message] : error;
  }
}

async function collect(stream: AsyncIterable<StreamResponse>): Promise<unknown[][]> {
  const found: unknown[][] = [];
  for await (const { payload } of stream) {
    if (payload?.$case === "task") found.push(["task", ...describeTask(payload.value)]);
    else if (payload?.$case === "message") found.push(["message", ...textsOf(payload.value.parts)]);
    else if (payload?.$case === "statusUpdate") found.push(["status_update", ...describeStatus(payload.value.status)]);
    else found.push([payload && "artifact_update", ...textsOf(payload?.value.artifact?.parts ?? [])]);
  }
  return found;
}

function describeResult(result: Message | Task): unknown[] {
  return "status" in result ? ["task", ...describeTask(result)] : ["message", ...textsOf(result.parts)];
}

function describeTask({ status, artifacts }: Task): unknown[] {
  const [state, ...texts] = describeStatus(status);
  return [state, ...artifacts.flatMap(({ parts }: Artifact) => textsOf(parts)), ...texts];
}

function describeStatus(status: TaskStatus | undefined): unknown[] {
  return [status && taskStateToJSON(status.state), ...textsOf(status?.message?.parts ?? [])];
}

function textsOf(parts: readonly Part[]): unknown[] {
  return parts.map(({ content }) => content?.value);
}
