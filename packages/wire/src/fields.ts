/** What header and trailer fields are between the layers. */

/** Header fields as `[name, value, name, value, ...]`; names in lower case. */
export type FieldList = readonly string[];
