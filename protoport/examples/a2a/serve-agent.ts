// An agent on one port: gRPC, REST with Server-Sent Events, and its card.
import { create, toJsonString } from "@bufbuild/protobuf";
import { createGateway, type Endpoint } from "@protoport/gateway";
import { createHash } from "node:crypto";
import { type AgentCard, AgentCardSchema } from "../gen/lf/a2a/v1/a2a_pb.ts";
import { agentRoutes, requireVersion, type Skill } from "./agent-service.ts";

/** An agent that is served. */
export interface ServedAgent {
  readonly url: string;
  /** Stops it after its calls, at the latest after ten seconds. */
  stop(): Promise<void>;
}

/** Serves an agent on a port of 127.0.0.1; 0 chooses a free one. */
export async function serveAgent(skill: Skill, port: number): Promise<ServedAgent> {
  const card = createCard();
  const gateway = createGateway({
    routes: agentRoutes(skill),
    interceptors: [requireVersion],
    rest: { profile: "a2a" },
    endpoints: [cardEndpoint(card)],
  });
  const { address, port: bound } = await gateway.listen({ port });
  const authority = `${address}:${bound}`;
  const at = (protocolBinding: string, url: string): unknown =>
    card.supportedInterfaces.push({
      $typeName: "lf.a2a.v1.AgentInterface",
      url,
      protocolBinding,
      tenant: "",
      protocolVersion: "1.0",
    });
  at("HTTP+JSON", `http://${authority}`);
  at("GRPC", authority);
  return { url: `http://${authority}`, stop: async () => await gateway.drain(10_000) };
}

function createCard(): AgentCard {
  return create(AgentCardSchema, {
    name: "Gardener",
    description: "Waters plants.",
    version: "1.0.0",
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [
      {
        id: "water",
        name: "Water",
        description: "Waters a plant with some liters.",
        tags: ["garden"],
        examples: ["water 3"],
      },
    ],
  });
}

/** Serves a card where clients look for it (A2A §8.2), so that they can cache it (§8.6). */
function cardEndpoint(card: AgentCard): Endpoint {
  const lastModified = new Date().toUTCString();
  return {
    path: "/.well-known/agent-card.json",
    atRoot: true,
    open: true,
    handle({ header }) {
      const body = toJsonString(AgentCardSchema, card);
      const etag = `"${createHash("sha256").update(body).digest("base64url")}"`;
      const fields = { etag, "last-modified": lastModified, "cache-control": "public, max-age=300" };
      if (header.get("if-none-match") === etag) return { httpStatus: 304, header: fields, body: "" };
      return { httpStatus: 200, header: { ...fields, "content-type": "application/json" }, body };
    },
  };
}
