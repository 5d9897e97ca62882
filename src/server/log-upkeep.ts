import type { Log } from "@protoport/telemetry/logs";
import type { OnUpkeep } from "../stores/index.ts";
import type { PlantErrorCode } from "../service/index.ts";

/** Returns a callback that logs one line per maintenance event. */
export function logUpkeep(log: Pick<Log, "info" | "warn">): OnUpkeep {
  return ({ kind, ...fields }) => {
    switch (kind) {
      case "migrated":
        return log.info(fields, "schema migrated");
      case "records-dropped":
        return log.info(fields, "old deletion records dropped");
      case "second-name-found":
        return log.warn(withCode("ERR_STORE_SECOND_NAME", fields), "the file of the store has a second name");
      case "second-name-gone":
        return log.warn(fields, "the file of the store has a single name again");
      case "checkpoints-stalled":
        return log.warn(withCode("ERR_CHECKPOINTS_STALLED", fields), "the write-ahead log is not copied into the file");
      case "checkpoints-resumed":
        return log.warn(fields, "the write-ahead log is copied into the file again");
      case "prepared-statements-refused":
        return log.warn(fields, "cannot use prepared statements");
      case "connections-refused":
        return log.warn(fields, "too few database connections; allow five per process");
      default:
        return log.warn(withCode("ERR_RETENTION_FAILED", fields), "cannot drop old deletion records");
    }
  };
}

function withCode(errorCode: PlantErrorCode, fields: object): object {
  return { errorCode, ...fields };
}
