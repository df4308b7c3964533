/**
 * Tables: the rows that `kubectl get` prints, made by the server.
 *
 * A printer has the columns of a kind and turns one object into the cells of one row. All columns
 * are always sent, those of priority 1 are shown by `-o wide`. What stands here is the frame; the
 * printers of the kinds are in the `printing-*.ts` files.
 */
import { isObject, type JsonObject, type JsonValue } from '../json/json-value.ts';
import { stringAt } from '../json/json.ts';
import { ageText } from './printing-age.ts';
import { ADMISSION_PRINTERS } from './printing-admission.ts';
import { CLUSTER_PRINTERS } from './printing-cluster.ts';
import { columnsOf, type Column, type Printer, type Row } from './printing-columns.ts';
import { CORE_PRINTERS } from './printing-core.ts';
import { NETWORK_PRINTERS } from './printing-network.ts';
import { podPrinter } from './printing-pods.ts';
import { STORAGE_PRINTERS } from './printing-storage.ts';
import { WORKLOAD_PRINTERS } from './printing-workloads.ts';
import { badRequest, failed, success, type Result } from '../meta/status.ts';

const PRINTERS: ReadonlyMap<string, Printer> = new Map([
  ['/Pod', podPrinter],
  ...CORE_PRINTERS,
  ...WORKLOAD_PRINTERS,
  ...NETWORK_PRINTERS,
  ...STORAGE_PRINTERS,
  ...CLUSTER_PRINTERS,
  ...ADMISSION_PRINTERS,
]);

/** Kinds without a printer of their own: the name and the time as it is stored. */
const defaultPrinter: Printer = {
  columns: [
    ...columnsOf('Name'),
    {
      name: 'Created At',
      type: 'date',
      format: '',
      description: 'When the server stored the object first, in UTC.',
      priority: 0,
    },
  ],
  row: (object) => ({
    cells: [
      stringAt(object, 'metadata', 'name'),
      stringAt(object, 'metadata', 'creationTimestamp') || '<unknown>',
    ],
  }),
};

/** Custom resources that declare no columns: name and age. */
export const customPrinter: Printer = {
  columns: columnsOf('Name, Age date'),
  row: (object, nowMs) => ({
    cells: [stringAt(object, 'metadata', 'name'), ageText(object, nowMs)],
  }),
};

/** The printer of a kind; `group` is '' for the core group. Never undefined. */
export function printerOf(group: string, kind: string): Printer {
  return PRINTERS.get(`${group}/${kind}`) ?? defaultPrinter;
}

/** What stands in the `object` of each row. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Reads the `includeObject` parameter; anything unknown is upstream's 400. */
export function parseIncludeObject(text: string): Result<IncludeObject> {
  if (text === '') return success('Metadata');
  if (text === 'None' || text === 'Metadata' || text === 'Object') return success(text);
  const why = `includeObject: Invalid value: ${JSON.stringify(text)}`;
  const must = "must be 'Metadata', 'Object', 'None', or empty";
  return failed(badRequest(`Unable to convert to Table as requested: ${why}: ${must}`));
}

const columnTexts = new WeakMap<Printer, string>();

/** `columnDefinitions` as JSON; the same text each time. */
export function columnsText(printer: Printer): string {
  let text = columnTexts.get(printer);
  if (text === undefined) columnTexts.set(printer, (text = JSON.stringify(printer.columns)));
  return text;
}

/** One row as JSON around `objectText`, the JSON of its object or `null`. */
export function rowText(row: Row, objectText: string): string {
  return `${rowOpening(row)}${objectText}}`;
}

/** The same up to its object. */
export function rowOpening(row: Row): string {
  const cells = JSON.stringify(row.cells);
  const conditions =
    row.conditions === undefined ? '' : `,"conditions":${JSON.stringify(row.conditions)}`;
  return `{"cells":${cells}${conditions},"object":`;
}

/** The metadata of an object as an object of its own. */
export function partialObjectMetadata(object: JsonObject, version: 'v1' | 'v1beta1'): JsonObject {
  const metadata = object['metadata'];
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: isObject(metadata) ? metadata : {},
  };
}

/** Everything that surrounds the rows of a table. */
export interface TableFrame {
  readonly version: 'v1' | 'v1beta1';
  readonly include: IncludeObject;
  readonly nowMs: number;
  /** `metadata` of the table: resourceVersion, continue, remainingItemCount. */
  readonly metadata: JsonObject;
  /** False from the second event of a watch on. */
  readonly hasColumns: boolean;
}

/** A whole table as a value, for answers that are not streamed. */
export function tableOf(
  printer: Printer,
  objects: readonly JsonObject[],
  frame: TableFrame,
): JsonObject {
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${frame.version}`,
    metadata: frame.metadata,
    columnDefinitions: frame.hasColumns ? printer.columns.map((column) => ({ ...column })) : null,
    rows: objects.length > 0 ? objects.map((one) => rowOf(printer, one, frame)) : noRows(printer),
  };
}

/** Without a printer upstream makes the list of rows only when something comes into it. */
export function noRows(printer: Printer): JsonValue {
  return printer === defaultPrinter ? null : [];
}

function rowOf(printer: Printer, object: JsonObject, frame: TableFrame): JsonObject {
  const { cells, conditions } = printer.row(object, frame.nowMs);
  return {
    cells: [...cells],
    ...(conditions === undefined ? {} : { conditions: conditions.map((one) => ({ ...one })) }),
    object: includedObject(object, frame),
  };
}

function includedObject(object: JsonObject, frame: TableFrame): JsonValue {
  if (frame.include === 'None') return null;
  return frame.include === 'Object' ? object : partialObjectMetadata(object, frame.version);
}

export type { Column, Printer, Row };
