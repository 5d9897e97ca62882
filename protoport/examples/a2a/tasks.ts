// The tasks of an agent, in memory.
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ListTasksRequest, ListTasksResponse, Task } from "../gen/lf/a2a/v1/a2a_pb.ts";
import { AgentTask } from "./agent-task.ts";
import { a2aError, invalidField } from "./errors.ts";

/** The tasks that are kept. Then a new one replaces the one that has been over for the longest time. */
const tasksMax = 1000;

const pageSizeMax = 100;

/** The tasks of an agent. */
export class Tasks {
  readonly #tasks = new Map<string, AgentTask>();

  /** Creates a task. @throws ConnectError if the agent is working on too many */
  create(contextId: string): AgentTask {
    if (this.#tasks.size >= tasksMax) {
      const oldest = this.#newestFirst().findLast(({ isRunning }) => !isRunning);
      if (oldest === undefined)
        throw new ConnectError("the agent is working on too many tasks", Code.ResourceExhausted);
      this.#tasks.delete(oldest.id);
    }
    const task = new AgentTask(contextId);
    this.#tasks.set(task.id, task);
    return task;
  }

  /** Returns a task. @throws ConnectError if there is none with this id */
  get(id: string): AgentTask {
    const task = this.#tasks.get(id);
    if (task === undefined) throw a2aError("TASK_NOT_FOUND", `there is no task ${JSON.stringify(id)}`);
    return task;
  }

  /** Returns one page of the tasks, the most recently updated ones first (A2A §3.1.4). */
  list(request: ListTasksRequest): Omit<ListTasksResponse, "$typeName"> {
    const { contextId, status, pageSize = 50, pageToken, statusTimestampAfter: after } = request;
    if (pageSize < 1 || pageSize > pageSizeMax) throw invalidField("page_size", `must be from 1 to ${pageSizeMax}`);
    if (!/^\d{0,20}$/.test(pageToken)) throw invalidField("page_token", "must be one of a response");
    const matching = this.#newestFirst().filter(
      (task) =>
        (contextId === "" || task.contextId === contextId) &&
        (status === 0 || task.state === status) &&
        (after === undefined || task.timestampMs >= timestampMs(after)),
    );
    const rest = pageToken === "" ? matching : matching.filter(({ updated }) => updated < BigInt(pageToken));
    const page = rest.slice(0, pageSize);
    const nextPageToken = rest.length > page.length ? String(page.at(-1)?.updated) : "";
    return { tasks: page.map((task) => listed(task, request)), nextPageToken, pageSize, totalSize: matching.length };
  }

  #newestFirst(): AgentTask[] {
    return [...this.#tasks.values()].toSorted((a, b) => (a.updated < b.updated ? 1 : -1));
  }
}

function listed(task: AgentTask, { historyLength, includeArtifacts = false }: ListTasksRequest): Task {
  const view = task.view(historyLength);
  return includeArtifacts ? view : { ...view, artifacts: [] };
}
