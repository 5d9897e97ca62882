import { principalKey } from "@plantstore/auth";
import { createMcp, type ProtocolExtension } from "@plantstore/mcp";
import { comments } from "../gen/comments.ts";
import { PlantService } from "../gen/es/plantstore/v1/plant_service_pb.ts";
import { policyOf } from "../service/index.ts";

/**
 * Creates the tools for AI agents: each plant store RPC. A caller sees the tools for which its token has the scope.
 * `admit` and the credential interceptor check each call's scope.
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
