// An agent that waters plants: "water 3" takes three steps, "water" asks how many, and anything else gets a message.
import { setTimeout } from "node:timers/promises";
import { type Message, TaskState } from "../gen/lf/a2a/v1/a2a_pb.ts";
import type { Skill } from "./agent-service.ts";
import { type Step, text } from "./agent-task.ts";
import { a2aError } from "./errors.ts";

/** Maximum number of liters of a task. */
const litersMax = 100;

/** How long one liter takes. */
const literMs = 100;

/** The skill of the agent. */
export const gardener: Skill = (message) => {
  const order = textOf(message).trim();
  const liters = Number(/^(?:water )?(\d{1,3})$/.exec(order)?.[1] ?? 0);
  if (liters > 0 && liters <= litersMax) return (signal) => water(liters, signal);
  if (order === "water") return ask;
  return text(`write "water 3" for three liters; the can holds ${litersMax}`);
};

function textOf({ parts }: Message): string {
  return parts
    .map(({ content: { case: kind, value }, mediaType }) => {
      if (kind === "text" && ["", "text/plain"].includes(mediaType)) return value;
      throw a2aError("CONTENT_TYPE_NOT_SUPPORTED", "the parts of a message must be text/plain");
    })
    .join("\n");
}

async function* water(liters: number, signal: AbortSignal): AsyncGenerator<Step> {
  for (let liter = 1; liter <= liters; liter += 1) {
    await setTimeout(literMs, undefined, { signal });
    const parts = text(`liter ${liter}\n`);
    yield { artifactId: "log", parts, append: liter > 1, lastChunk: liter === liters };
  }
  yield { state: TaskState.COMPLETED, parts: text(`watered with ${liters} liters`) };
}

async function* ask(): AsyncGenerator<Step> {
  yield { state: TaskState.INPUT_REQUIRED, parts: text("how many liters?") };
}
