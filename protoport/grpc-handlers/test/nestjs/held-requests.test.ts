import { expect, test } from "vitest";
import { holdRequests } from "../../src/nestjs/mounted-application.ts";
import { waitSomeTurns } from "@protoport/testing/process";

// Nest's request stream and the call are objects with their interfaces. The suite frameworks tests streams in Nest.

function subscribe(requests: object): void {
  Object(requests).drainBuffer();
}

test("a call resumes after Nest has delivered the buffered requests", async () => {
  const order: string[] = [];
  const requests = { drainBuffer: () => void setImmediate(() => order.push("buffered requests")) };
  const call = { pause: () => order.push("pause"), resume: () => order.push("resume") };
  holdRequests(subscribe)(requests, {}, call);
  await waitSomeTurns();
  expect(order).toEqual(["pause", "buffered requests", "resume"]);
});
