import {
  credentials,
  makeGenericClientConstructor,
  Metadata,
  status,
  type Client,
  type ServiceClientConstructor,
  type ServiceError,
} from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { PlantServiceClient } from "../../src/plantstore/client/index.ts";
import { openMemoryStore } from "../../src/plantstore/plants/index.ts";
import { projectFolder } from "../support/process/child-program.ts";
import { within } from "../support/deadline.ts";
import { startPlantServer, tokens } from "../support/server/plant-server.ts";

/** Beyond what a double holds, so that a client that goes through one shows. */
const id = 2n ** 53n + 1n;

/** A call of one client, as a promise of its error or of nothing. */
type DeletePlant = (metadata: Metadata) => Promise<ServiceError | undefined>;

interface Row {
  readonly name: string;
  readonly open: (target: string) => Promise<{ deletePlant: DeletePlant; client: Client }>;
}

const clients: readonly Row[] = [
  {
    name: "the stub that ts-proto generates",
    open: async (target) => {
      const client = new PlantServiceClient(target, credentials.createInsecure());
      return { client, deletePlant: promised((metadata, done) => client.deletePlant({ id }, metadata, done)) };
    },
  },
  {
    name: "a stub that proto-loader makes",
    open: async (target) => {
      const client = new (await loadPlantService())(target, credentials.createInsecure());
      return {
        client,
        deletePlant: promised((metadata, done) => client["deletePlant"]?.({ id: String(id) }, metadata, done)),
      };
    },
  },
];

describe("grpc-js", () => {
  test.each(clients)("deletes a plant once, with $name", async ({ open }) => {
    await using server = await startPlantServer({ store: openMemoryStore(new Set([id])) });
    const { client, deletePlant } = await open(`127.0.0.1:${String(server.address.port)}`);
    const authorized = new Metadata();
    authorized.set("authorization", `Bearer ${tokens.good}`);

    expect(await deletePlant(authorized)).toBeUndefined();
    expect(await deletePlant(authorized)).toMatchObject({
      code: status.NOT_FOUND,
      details: `plant ${String(id)} not found`,
    });
    const refusal = await deletePlant(new Metadata());
    expect(refusal).toMatchObject({ code: status.UNAUTHENTICATED, details: "a bearer token is required" });
    expect(refusal?.metadata.get("www-authenticate")).toStrictEqual(['Bearer realm="plantstore"']);
    client.close();
  });
});

async function loadPlantService(): Promise<ServiceClientConstructor> {
  const definition = await load("plantstore/v1/plant_service.proto", {
    includeDirs: [join(projectFolder, "proto")],
    longs: String,
  });
  const service = definition["plantstore.v1.PlantService"];
  // Messages and enums have a format, services have not.
  if (service === undefined || "format" in service) throw new Error("the proto has no plantstore.v1.PlantService");
  return makeGenericClientConstructor(service, "PlantService");
}

function promised(call: (metadata: Metadata, done: (error: ServiceError | null) => void) => unknown): DeletePlant {
  return (metadata) =>
    within(
      new Promise((resolve) => {
        call(metadata, (error) => resolve(error ?? undefined));
      }),
      "the answer of grpc-js",
    );
}
