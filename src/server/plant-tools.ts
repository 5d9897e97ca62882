import { principalKey } from "@protoport/auth";
import { createMcp, type ProtocolExtension } from "@protoport/gateway/mcp";
import { comments } from "../gen/comments.ts";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { policyOf } from "../service/index.ts";

/**
 * Creates a tool for AI agents from each plant store RPC. A caller sees only tools for which the caller's token has the
 * scope. `admit` and the credential interceptor check the scope for each call.
 */
export function createPlantTools(): ProtocolExtension {
  return createMcp({
    tools: [`${PlantService.typeName}.*`],
    serverInfo: { name: "plantstore", title: "Plant Store", version: "1.0.0" },
    comments,
    isListed: ({ parent, name }, { contextValues }) => {
      const scopes = contextValues.get(principalKey)?.scopes;
      const scope = policyOf(`/${parent.typeName}/${name}`)?.scope;
      return scope === undefined || scopes === "all" || scopes?.has(scope) === true;
    },
  });
}
