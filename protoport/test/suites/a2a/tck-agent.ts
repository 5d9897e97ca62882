// The agent for the Technology Compatibility Kit of A2A, whose messages select its behaviour by a prefix of their ids:
//   npx node protoport/test/suites/a2a/tck-agent.ts 9999
//   git clone --branch 1.0-dev https://github.com/a2aproject/a2a-tck && cd a2a-tck
//   python3 -m venv venv && venv/bin/pip install . && venv/bin/python run_tck.py --sut-host http://127.0.0.1:9999
import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { setTimeout } from "node:timers/promises";
import { TaskState } from "../../../examples/gen/lf/a2a/v1/a2a_pb.ts";
import type { Skill } from "../../../examples/a2a/agent-service.ts";
import { type Parts, type Step, text } from "../../../examples/a2a/agent-task.ts";
import { serveAgent } from "../../../examples/a2a/serve-agent.ts";

const file = { filename: "output.txt", mediaType: "text/plain" };
const raw: Parts = [{ ...file, content: { case: "raw", value: Buffer.from("tck") } }];
const url: Parts = [{ ...file, content: { case: "url", value: "https://example.com/output.txt" } }];
const data: Parts = [{ content: { case: "data", value: fromJson(ValueSchema, { key: "value", count: 42 }) } }];

const artifact = (parts: Parts): Step => ({ artifactId: "output", parts });
const completed = (parts?: Parts): Step => ({ state: TaskState.COMPLETED, ...(parts && { parts }) });

/** The steps for each prefix (scenarios/*.feature in the kit). The first one that matches applies. */
const steps: readonly (readonly [prefix: string, ...Step[]])[] = [
  ["tck-complete-task", completed(text("Hello from TCK"))],
  ["tck-artifact-text", artifact(text("Generated text content"))],
  ["tck-artifact-file-url", artifact(url)],
  ["tck-artifact-file", artifact(raw)],
  ["tck-artifact-data", artifact(data)],
  ["tck-input-required", { state: TaskState.INPUT_REQUIRED }],
  ["tck-reject-task", { state: TaskState.REJECTED, parts: text("rejected") }],
  ["tck-stream-001", artifact(text("Stream hello from TCK"))],
  ["tck-stream-003", artifact(text("Stream task lifecycle"))],
  ["tck-stream-ordering-001", artifact(text("Ordered output"))],
  ["tck-stream-artifact-text", artifact(text("Streamed text content"))],
  ["tck-stream-artifact-file", artifact(raw)],
  [
    "tck-stream-artifact-chunked",
    artifact(text("chunk-1 ")),
    { ...artifact(text("chunk-2")), append: true, lastChunk: true },
  ],
];

/** Twice the time after which the kit abandons a stream. */
const waitMs = 4000;

const skill: Skill = ({ messageId }) => {
  if (messageId.startsWith("tck-message-response")) return text("Direct message response");
  const isSlow = messageId.startsWith("test-resubscribe-message-id");
  const [, ...taken] = steps.find(([prefix]) => messageId.startsWith(prefix)) ?? [""];
  return async function* (signal) {
    if (isSlow) await setTimeout(waitMs, undefined, { signal });
    yield* taken;
  };
};

const agent = await serveAgent(skill, Number(process.argv[2] ?? 9999));
console.log(agent.url);
