import { randomUUID } from "node:crypto";
import { fromJsonString } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ListTasksResponse,
  ListTasksResponseSchema,
  SendMessageResponseSchema,
  type Task,
  TaskState,
} from "../../examples/gen/lf/a2a/v1/a2a_pb.ts";
import { gardener } from "../../examples/a2a/gardener.ts";
import { serveAgent, type ServedAgent } from "../../examples/a2a/serve-agent.ts";

// Tests the wire format. protoport/test/suites/a2a calls the agent with the A2A clients.

let agent: ServedAgent;
beforeAll(async () => {
  agent = await serveAgent(gardener, 0);
});
afterAll(async () => await agent.stop());

const version = { "a2a-version": "1.0" };
const json = { "content-type": "application/a2a+json" };

async function call(path: string, header: Record<string, string> = version, body?: unknown): Promise<Response> {
  const post = body !== undefined && { method: "POST", body: JSON.stringify(body) };
  return await fetch(`${agent.url}${path}`, { headers: { ...json, ...header }, ...post });
}

async function send(text: string, fields: object = {}, configuration: object = {}): Promise<Response> {
  const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text }], ...fields };
  return await call("/message:send", version, { message, configuration });
}

async function taskOf(response: Promise<Response>): Promise<Task> {
  const { payload } = fromJsonString(SendMessageResponseSchema, await (await response).text());
  if (payload.case !== "task") throw new Error(`expected a task, got ${payload.case ?? "nothing"}`);
  return payload.value;
}

describe("an A2A response", () => {
  test.each([
    { path: "/tasks", httpStatus: 200 },
    { path: "/tasks/none", httpStatus: 404 },
    { path: "/nowhere", httpStatus: 404 },
  ])("to $path is application/a2a+json", async ({ path, httpStatus }) => {
    const { status, headers } = await call(path);
    expect([status, headers.get("content-type")]).toEqual([httpStatus, "application/a2a+json"]);
  });

  test("ends after the Server-Sent Events of a streaming call", async () => {
    const message = { messageId: "1", role: "ROLE_USER", parts: [{ text: "water 1" }] };
    const response = await call("/message:stream", { ...version, accept: "*/*" }, { message });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events = (await response.text()).trim().split("\n\n");
    expect(events.map((event) => /^(?:retry: 3000\n)?data: \{"(\w+)"/.exec(event)?.[1])).toEqual([
      "task",
      "artifactUpdate",
      "statusUpdate",
    ]);
  });
});

describe("A2A versions", () => {
  test.each([
    { name: "a request with version 1.0", path: "/tasks", header: version, httpStatus: 200 },
    { name: "a request with version 1.0.1", path: "/tasks", header: { "a2a-version": "1.0.1" }, httpStatus: 200 },
    { name: "a request with version 1.0 in the query", path: "/tasks?A2A-Version=1.0", header: {}, httpStatus: 200 },
    { name: "a request without a version", path: "/tasks", header: {}, httpStatus: 400 },
    { name: "a request with version 1.1", path: "/tasks", header: { "a2a-version": "1.1" }, httpStatus: 400 },
    {
      name: "a subscription with version 1.1",
      path: "/tasks/none:subscribe",
      header: { "a2a-version": "1.1" },
      httpStatus: 400,
    },
  ])("$name gets a $httpStatus response", async ({ path, header, httpStatus }) => {
    const response = await call(path, header);
    expect(response.status).toBe(httpStatus);
    if (httpStatus === 400) expect(await response.text()).toContain('"reason":"VERSION_NOT_SUPPORTED"');
  });
});

test("the agent card lists both bindings, and has an ETag", async () => {
  const path = "/.well-known/agent-card.json";
  const response = await call(path, {});
  expect(await response.json()).toMatchObject({
    supportedInterfaces: [
      { url: agent.url, protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
      { url: new URL(agent.url).host, protocolBinding: "GRPC", protocolVersion: "1.0" },
    ],
  });
  const again = await call(path, { "if-none-match": response.headers.get("etag") ?? "" });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

test("a body may repeat path fields, and contain unknown fields", async () => {
  const { id } = await taskOf(send("water 100", {}, { returnImmediately: true }));
  const response = await call(`/my/tasks/${id}:cancel`, version, { id, tenant: "my", later: 1 });
  expect(await response.json()).toMatchObject({ id, status: { state: "TASK_STATE_CANCELED" } });
  const other = await call(`/tasks/${id}:cancel`, version, { id: "other" });
  expect(other.status).toBe(400);
});

test("a waiting task continues after a message with its id and context", async () => {
  const { id, contextId, status } = await taskOf(send("water"));
  expect(status?.state).toBe(TaskState.INPUT_REQUIRED);
  const inOther = await send("1", { taskId: id, contextId: "other" });
  expect(await inOther.text()).toContain("message.context_id must be that of the task");
  const { history, ...task } = await taskOf(send("1", { taskId: id, contextId }));
  expect([task.id, task.contextId, task.status?.state]).toEqual([id, contextId, TaskState.COMPLETED]);
  const texts = history.flatMap(({ parts }) => parts.map(({ content }) => content.value));
  expect(texts).toEqual(["water", "how many liters?", "1"]);
  const afterwards = await send("1", { taskId: id });
  expect(await afterwards.text()).toContain('"reason":"UNSUPPORTED_OPERATION"');
});

test("a subscription to a waiting task ends when the task is completed", async () => {
  const { id } = await taskOf(send("water"));
  const subscription = await call(`/tasks/${id}:subscribe`, version, undefined);
  const [text] = await Promise.all([subscription.text(), send("1", { taskId: id })]);
  const states = [...text.matchAll(/"state":"TASK_STATE_(\w+)"/g)].map(([, state]) => state);
  expect(states).toEqual(["INPUT_REQUIRED", "WORKING", "COMPLETED"]);
});

describe("a task list", () => {
  const contextId = randomUUID();
  const listed: string[] = [];
  beforeAll(async () => {
    for (let sent = 0; sent < 3; sent += 1) listed.unshift((await taskOf(send("water", { contextId }))).id);
  });

  const list = async (query: string): Promise<ListTasksResponse> =>
    fromJsonString(ListTasksResponseSchema, await (await call(`/tasks?contextId=${contextId}${query}`)).text());

  test("begins with the newest task", async () => {
    const { tasks, nextPageToken, pageSize, totalSize } = await list("");
    expect([nextPageToken, pageSize, totalSize]).toEqual(["", 50, 3]);
    expect(tasks.map(({ id }) => id)).toEqual(listed);
  });

  test("continues at the page token", async () => {
    const { tasks, nextPageToken } = await list("&pageSize=2");
    const rest = await list(`&pageSize=2&pageToken=${nextPageToken}`);
    expect([...tasks, ...rest.tasks].map(({ id }) => id)).toEqual(listed);
    expect(rest.nextPageToken).toBe("");
  });

  test.each([
    { query: "&status=TASK_STATE_COMPLETED", count: 0 },
    { query: "&status=TASK_STATE_INPUT_REQUIRED", count: 3 },
    { query: "&statusTimestampAfter=2020-01-01T00:00:00Z", count: 3 },
    { query: "&statusTimestampAfter=2099-01-01T00:00:00Z", count: 0 },
  ])("with $query has $count tasks", async ({ query, count }) => {
    expect((await list(query)).totalSize).toBe(count);
  });

  test.each(["&pageSize=0", "&pageSize=101", "&pageToken=x", "&historyLength=-1"])(
    "with %s is refused",
    async (query) => {
      const response = await call(`/tasks?${query}`);
      expect(await response.json()).toMatchObject({ error: { code: 400, status: "INVALID_ARGUMENT" } });
    },
  );
});
