import { expect, test } from "vitest";
import { type Address, exchangeHttp1, openHttp1, startGreenhouse } from "@protoport/testing";
import { authorized, startPlantServer } from "../support/server/plant-server.ts";

// Requests that do not arrive in time, at the plant store and at a gateway.

const limits = { headerTimeoutMs: 200 };

interface Row {
  readonly name: string;
  readonly start: () => Promise<{ readonly address: Address; [Symbol.asyncDispose](): Promise<void> }>;
}

const rows: readonly Row[] = [
  { name: "the plant store", start: () => startPlantServer({ limits }) },
  { name: "a gateway", start: () => startGreenhouse({}, { limits }) },
];

test.each(rows)("$name responds with 408 to a late header, and serves other clients", async ({ name, start }) => {
  await using server = await start();
  using late = await openHttp1(server.address);
  late.write("DELETE /plants/7 HTTP/1.1\r\nhost: x\r\n");
  const response = await late.readResponse();
  expect([response.httpStatus, JSON.parse(String(response.body))]).toEqual([
    408,
    expect.objectContaining({ message: expect.stringContaining("the request did not arrive in time") }),
  ]);
  const other = await exchangeHttp1(server.address, { httpMethod: "DELETE", path: "/plants/7", header: [authorized] });
  expect(other.httpStatus).toBe(name.includes("plant") ? 400 : 404);
});
