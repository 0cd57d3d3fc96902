int main(int count) { return count; }
