import { describe, expect, test } from "vitest";
import { shared } from "../../../protoport/testing/src/shared.ts";
import { hasProgram, runProgram } from "@protoport/testing/process";
import { startPlantServer, tokens } from "../../support/server/plant-server.ts";
import { openSituationStore, situations } from "../../support/plants/situation-store.ts";

/** grpcurl's exit code is the gRPC code's number plus this. */
const codeBase = 64;

const definitions = [
  { name: "with reflection", flags: [] },
  {
    name: "with the .proto file",
    // oxfmt-ignore
    flags: [
      "-import-path", "proto", "-import-path", "protoport/gateway/proto", "-proto", "plantstore/v1/plant_service.proto",
    ],
  },
];

const bearer = (token: string): string[] => ["-H", `Authorization: Bearer ${token}`];

describe.runIf(hasProgram("grpcurl")).each(definitions)("grpcurl $name", ({ flags }) => {
  const server = shared(() => startPlantServer({ store: openSituationStore(new Set([1n])) }));

  function deletePlant(id: bigint, credential: readonly string[], more: readonly string[] = []) {
    const target = [`127.0.0.1:${server.address.port}`, "plantstore.v1.PlantService/DeletePlant"];
    return runProgram("grpcurl", ["-plaintext", ...flags, ...credential, ...more, "-d", `{"id":"${id}"}`, ...target]);
  }

  test("deletes a plant once", async () => {
    expect(await deletePlant(1n, bearer(tokens.good))).toMatchObject({ exitCode: 0, stdout: "{}\n" });
    const again = await deletePlant(1n, bearer(tokens.good));
    expect(again).toMatchObject({ exitCode: codeBase + 5, stderr: expect.stringContaining("plant 1 not found") });
  });

  test("fails with DEADLINE_EXCEEDED after its deadline", async () => {
    const { exitCode } = await deletePlant(situations.slow, bearer(tokens.good), ["-max-time", "3"]);
    expect(exitCode).toBe(codeBase + 4);
  });
});
