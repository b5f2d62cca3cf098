// The flows of the Node client's own samples, as tests: one line "ok NAME" or "failed NAME: why" each.

import assert from 'node:assert/strict';
import {Bigtable} from '@google-cloud/bigtable';

const instance = new Bigtable({projectId: 'p'}).instance('i');
const table = instance.table('node');

const flows = {
  async 'create a table with families'() {
    await instance.createTable('node', {families: ['follows', {name: 'numbers', rule: {versions: 2}}], splits: [Buffer.from('m')]});
    assert.equal((await table.exists())[0], true);
    const [families] = await table.getFamilies();
    assert.deepEqual(families.map(family => family.id).sort(), ['follows', 'numbers']);
    assert.deepEqual(families.find(family => family.id === 'numbers').metadata.gcRule.maxNumVersions, 2);
  },
  async 'list tables'() {
    const [tables] = await instance.getTables();
    assert.ok(tables.some(found => found.id === 'node'));
  },
  async 'insert rows and read them'() {
    const row = (key, others) => ({key, data: {follows: Object.fromEntries(others.map(other => [other, {value: 1, timestamp: 1000}]))}});
    await table.insert([row('gwashington', ['jadams']), row('jadams', ['gwashington', 'tjefferson']), row('tjefferson', ['gwashington'])]);
    const [rows] = await table.getRows();
    assert.deepEqual(rows.map(found => found.id), ['gwashington', 'jadams', 'tjefferson']);
    assert.deepEqual(Object.keys(rows[1].data.follows), ['gwashington', 'tjefferson']);
  },
  async 'read a row, and one that is not there'() {
    const [found] = await table.row('jadams').get();
    assert.equal(found.data.follows.gwashington[0].value, 1);
    await assert.rejects(table.row('nobody').get(), /Unknown row/);
  },
  async 'an empty stream ends'() {
    const [rows] = await table.getRows({prefix: 'zzz'});
    assert.deepEqual(rows, []);
  },
  async 'read ranges, prefixes, keys and limits'() {
    const ids = async options => (await table.getRows(options))[0].map(found => found.id);
    assert.deepEqual(await ids({start: 'h', end: 'k'}), ['jadams']);
    assert.deepEqual(await ids({prefixes: ['gw', 'tj']}), ['gwashington', 'tjefferson']);
    assert.deepEqual(await ids({keys: ['tjefferson', 'gwashington']}), ['gwashington', 'tjefferson']);
    assert.deepEqual(await ids({limit: 2}), ['gwashington', 'jadams']);
  },
  async 'filter by column and value'() {
    const [rows] = await table.getRows({filter: [{column: /t.*/}, {column: {cellLimit: 1}}]});
    assert.deepEqual(rows.map(found => found.id), ['jadams']);
    const condition = {condition: {test: [{column: 'tjefferson'}], pass: [{all: true}], fail: [{row: {cellLimit: 1}}]}};
    const [decided] = await table.getRows({filter: condition});
    assert.deepEqual(decided.map(found => Object.keys(found.data.follows).length), [1, 2, 1]);
  },
  async 'increment, append, versions'() {
    const row = table.row('counter');
    for (let i = 0; i < 3; i++) await row.increment('numbers:hits', 5);
    const [{data}] = await row.get();
    assert.deepEqual(data.numbers.hits.map(cell => cell.value), [15, 10]);
    await row.createRules([{column: 'follows:log', append: 'a'}, {column: 'follows:log', append: 'b'}]);
    const [appended] = await row.get();
    assert.equal(appended.data.follows.log[0].value, 'ab');
  },
  async 'check and mutate'() {
    const row = table.row('gwashington');
    const [matched] = await row.filter({column: 'jadams'}, {onMatch: [{method: 'insert', data: {follows: {checked: 1}}}]});
    assert.equal(matched, true);
    const [{data}] = await row.get();
    assert.equal(data.follows.checked[0].value, 1);
  },
  async 'delete cells, rows and prefixes'() {
    await table.row('jadams').deleteCells(['follows:tjefferson']);
    const [{data}] = await table.row('jadams').get();
    assert.deepEqual(Object.keys(data.follows), ['gwashington']);
    await table.row('tjefferson').delete();
    await table.deleteRows('gw');
    const [rows] = await table.getRows();
    assert.deepEqual(rows.map(found => found.id), ['counter', 'jadams']);
  },
  async 'sample row keys'() {
    const [samples] = await table.sampleRowKeys();
    assert.ok(samples.length >= 2, JSON.stringify(samples));
  },
  async 'change and delete families and tables'() {
    const family = table.family('follows');
    await family.setMetadata({rule: {versions: 1}});
    const [{gcRule}] = await family.getMetadata();
    assert.equal(gcRule.maxNumVersions, 1);
    await family.delete();
    await table.delete();
    assert.equal((await table.exists())[0], false);
  },
};

for (const [name, flow] of Object.entries(flows)) {
  try {
    await flow();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`failed ${name}: ${String(error.stack ?? error).replaceAll('\n', ' ').slice(0, 300)}`);
  }
}
process.exit(0);
