// @generated from the comments of proto/plantstore

/** The definition's comments, by the full name of the described element. */
export const comments: ReadonlyMap<string, string> = new Map([
  [
    "plantstore.v1.PlantService",
    "The plant store, interface version 1.0.0.\n\nEvery call carries a bearer credential: `Authorization: Bearer <token>`\n(RFC 6750), as a header over HTTP and as metadata over gRPC."
  ],
  [
    "plantstore.v1.PlantService.DeletePlant",
    "Deletes the single plant with the given identifier.\n\nReturns when the deletion is durable. Repeating a call is safe: it returns\nNOT_FOUND, and no other plant is deleted. With the same `Idempotency-Key`,\nit returns the result of the first call.\n\nOver HTTP this is `DELETE /plants/{id}`: 204 with no body when the plant is\ndeleted, otherwise 400 with the `Error` record."
  ],
  [
    "plantstore.v1.DeletePlantRequest",
    "Names the plant to delete."
  ],
  [
    "plantstore.v1.DeletePlantRequest.id",
    "The identifier of the plant. Required: a call without it is\nINVALID_ARGUMENT, never a delete of plant 0. Every 64-bit signed integer,\nzero and negative ones included, is a valid identifier."
  ],
  [
    "plantstore.v1.Error",
    "The error record: the JSON body of every error over HTTP."
  ],
  [
    "plantstore.v1.Error.error",
    "The gRPC status code of the error, for example 5 for NOT_FOUND."
  ],
  [
    "plantstore.v1.Error.message",
    "What went wrong, for the developer of the client. Not meant for parsing."
  ]
]);
