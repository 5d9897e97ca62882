import type { Log } from "@plantstore/telemetry/logs";
import type { OnUpkeep } from "../stores/index.ts";
import type { PlantErrorCode } from "../service/index.ts";

/** Returns a callback that logs the upkeep of a store, one line per event. */
export function logUpkeep(log: Pick<Log, "info" | "warn">): OnUpkeep {
  return ({ kind, ...fields }) => {
    switch (kind) {
      case "migrated":
        return log.info(fields, "schema migrated");
      case "records-dropped":
        return log.info(fields, "deletion records dropped");
      case "worker-away":
        return log.warn(withCode("ERR_SERVER_AWAY", fields), "worker away");
      case "worker-back":
        return log.warn(fields, "worker back");
      case "names-refused":
        return log.warn(fields, "statements not prepared");
      default:
        return log.warn(withCode("ERR_RECORDS_NOT_DROPPED", fields), "deletion records not dropped");
    }
  };
}

function withCode(errorCode: PlantErrorCode, fields: object): object {
  return { errorCode, ...fields };
}
