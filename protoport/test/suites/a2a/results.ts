/** An A2A protocol binding, by its name in agent cards. */
export type Binding = "HTTP+JSON" | "GRPC";

/** What a client got from each call. */
export type Results = Readonly<Record<string, unknown>>;

/** What every client gets from the gardener, over each binding. */
export const expected: Results = {
  reply: ["message", 'write "water 3" for three liters; the can holds 100'],
  task: ["TASK_STATE_COMPLETED", "liter 1\n", "liter 2\n", "watered with 2 liters"],
  stream: [
    ["task", "TASK_STATE_WORKING"],
    ["artifact_update", "liter 1\n"],
    ["artifact_update", "liter 2\n"],
    ["status_update", "TASK_STATE_COMPLETED", "watered with 2 liters"],
  ],
  "stream of a reply": [["message", 'write "water 3" for three liters; the can holds 100']],
  question: ["TASK_STATE_INPUT_REQUIRED", "how many liters?"],
  "continued task": ["TASK_STATE_COMPLETED", "liter 1\n", "watered with 1 liters"],
  get: [true, 0, "TASK_STATE_COMPLETED", "liter 1\n", "liter 2\n", "watered with 2 liters"],
  list: [2, 2, true, ""],
  cancel: "TASK_STATE_CANCELED",
  subscribe: ["task", ["status_update", "TASK_STATE_COMPLETED", "watered with 2 liters"]],
  "subscribe afterwards": ["UnsupportedOperationError", "the task is over and has no more updates"],
  "cancel again": ["TaskNotCancelableError", "the task is over"],
  "get unknown": ["TaskNotFoundError", 'there is no task "none"'],
  "unsupported content": ["ContentTypeNotSupportedError", "the parts of a message must be text/plain"],
  webhook: ["PushNotificationNotSupportedError", "this agent has no webhooks"],
};
